"""A tool, and a hook for every tool call. Under the bus only the hook is used."""
import os

from . import tools

SCHEMA = {"name": "calculate", "parameters": {"type": "object", "properties": {"sum": {"type": "string"}}}}
CALLS = []


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "calculator.log"), "a") as out:
        out.write(line + "\n")


def seen(tool_name, args, result, task_id, **more):
    CALLS.append(tool_name)
    note("%d calls, %s last; two and two is %s" % (len(CALLS), tool_name, tools.calculate({"sum": "2 + 2"})))


def register(ctx):
    ctx.register_tool(name="calculate", toolset="calculator", schema=SCHEMA, handler=tools.calculate)
    ctx.register_command("calc", handler=None, description="sums")
    ctx.register_hook("post_tool_call", seen)

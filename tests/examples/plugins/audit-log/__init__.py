"""Logs every tool call: session, tool, arguments."""
import json
import os


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "audit.log"), "a") as out:
        out.write(line + "\n")


def audit(tool_name, args, session_id, **more):
    note("%s %s %s" % (session_id, tool_name, json.dumps(args, sort_keys=True)[:200]))


def register(ctx):
    ctx.register_hook("pre_tool_call", audit)

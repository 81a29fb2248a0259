"""Logs which commands are used, and by which user."""
import os


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "commands.log"), "a") as out:
        out.write(line + "\n")


def handle(event_type, context):
    note("%s %s by %s on %s" % (context["command"], context.get("args"), context.get("user_id"), context.get("platform")))

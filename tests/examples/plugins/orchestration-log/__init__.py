"""Logs a line for each finished sub-agent."""
import os


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "orchestration.log"), "a") as out:
        out.write(line + "\n")


def done(parent_session_id, child_role, child_status, duration_ms, **more):
    note("%s: %s %s after %d ms" % (parent_session_id, child_role, child_status, duration_ms))


def register(ctx):
    ctx.register_hook("subagent_stop", done)

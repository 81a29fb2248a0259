"""Logs the length of the answers, with the model."""
import os


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "lengths.log"), "a") as out:
        out.write(line + "\n")


def measure(session_id, assistant_response, model, **more):
    note("%s %s %d" % (session_id, model, len(assistant_response or "")))


def register(ctx):
    ctx.register_hook("post_llm_call", measure)

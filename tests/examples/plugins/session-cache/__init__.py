"""Keeps data of a session while it runs; logs its result at the end."""
import os
import time

CACHE = {}


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "sessions.log"), "a") as out:
        out.write(line + "\n")


def begin(session_id, model, platform, **more):
    CACHE[session_id] = {"model": model, "calls": 0, "since": time.monotonic()}


def called(session_id, **more):
    if session_id in CACHE:
        CACHE[session_id]["calls"] += 1


def end(session_id, completed, interrupted, **more):
    kept = CACHE.pop(session_id, None)
    if kept:
        took = time.monotonic() - kept["since"]
        how = "done" if completed else "interrupted" if interrupted else "failed"
        note("%s on %s: %s, %d calls, %s" % (session_id, kept["model"], how, kept["calls"], "timed" if took >= 0 else ""))


def register(ctx):
    ctx.register_hook("on_session_start", begin)
    ctx.register_hook("post_tool_call", called)
    ctx.register_hook("on_session_end", end)

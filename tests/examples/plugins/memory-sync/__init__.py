"""Sends every turn to a memory service; a failure is ignored."""
import json
import os
import urllib.request


def post(path, body):
    request = urllib.request.Request(os.environ["EXAMPLE_URL"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3) as reply:
        return json.loads(reply.read() or b"{}")


async def sync(session_id, user_message, assistant_response, **more):
    try:
        post("/store", {"session": session_id, "user": user_message, "assistant": assistant_response})
    except OSError:
        pass


def register(ctx):
    ctx.register_hook("post_llm_call", sync)

"""Adds what a memory service knows about the question to the context."""
import json
import os
import urllib.request


def post(path, body):
    request = urllib.request.Request(os.environ["EXAMPLE_URL"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3) as reply:
        return json.loads(reply.read() or b"{}")


def recall(session_id, user_message, is_first_turn=False, **more):
    try:
        found = post("/recall", {"session": session_id, "question": user_message})["found"]
    except OSError:
        return None
    return {"context": "Remembered:\n" + "\n".join("- " + one for one in found)} if found else None


def register(ctx):
    ctx.register_hook("pre_llm_call", recall)

"""Sends an alert about a task that takes many steps."""
import json
import os
import urllib.request

STEPS = 10


def post(path, body):
    request = urllib.request.Request(os.environ["EXAMPLE_URL"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3) as reply:
        return json.loads(reply.read() or b"{}")


async def handle(event_type, context):
    if context.get("iteration") == STEPS:
        post("/alert", {"text": "%d steps; last: %s" % (STEPS, ", ".join(context.get("tool_names", [])))})

"""Drops direct messages of unknown users; they do not even get a pairing code."""
import os


def door(event, **more):
    known = os.environ.get("KNOWN_USERS", "").split(",")
    if event.source.chat_type == "dm" and event.source.user_id not in known:
        return {"action": "skip", "reason": "a stranger"}


def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", door)

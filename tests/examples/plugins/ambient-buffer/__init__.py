"""Buffers group messages until one mentions the agent, and then passes them on as one message."""
HEARD = {}


def gather(event, **more):
    chat = HEARD.setdefault((event.source.platform, event.source.chat_id), [])
    if "@agent" not in event.text:
        chat.append(event.text)
        return {"action": "skip", "reason": "kept for later"}
    whole = "\n".join(chat + [event.text])
    chat.clear()
    return {"action": "rewrite", "text": whole}


def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", gather)

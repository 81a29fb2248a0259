"""Blocks some tools, whatever their arguments."""
REFUSED = {"computer_use", "delegate_task"}


def refuse(tool_name, **more):
    if tool_name in REFUSED:
        return {"action": "block", "message": "%s is switched off here" % tool_name}


def register(ctx):
    ctx.register_hook("pre_tool_call", refuse)

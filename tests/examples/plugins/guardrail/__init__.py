"""One sentence of policy with every prompt."""


def policy(**more):
    return "House rule: ask before anything is deleted."


def register(ctx):
    ctx.register_hook("pre_llm_call", policy)

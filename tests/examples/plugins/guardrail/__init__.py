"""Adds a sentence of policy to every prompt."""


def policy(**more):
    return "House rule: ask before anything is deleted."


def register(ctx):
    ctx.register_hook("pre_llm_call", policy)

"""A change of voice, for those who asked for it."""
import os


def voice(response_text, **more):
    if os.environ.get("SPONGEBOB_MODE") == "on":
        return response_text.replace("!", "! Tartar sauce!")


def register(ctx):
    ctx.register_hook("transform_llm_output", voice)

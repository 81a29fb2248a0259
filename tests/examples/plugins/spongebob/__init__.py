"""Changes the style of the answers, if a variable says so."""
import os


def voice(response_text, **more):
    if os.environ.get("SPONGEBOB_MODE") == "on":
        return response_text.replace("!", "! Tartar sauce!")


def register(ctx):
    ctx.register_hook("transform_llm_output", voice)

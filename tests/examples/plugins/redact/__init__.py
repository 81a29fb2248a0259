"""Removes keys from the results of tools before the model gets them."""
import re

KEY = re.compile(r"sk-[A-Za-z0-9]{8,}")


def redact(tool_name, arguments, result, task_id=None, **more):
    return KEY.sub("[key removed]", result) if KEY.search(result) else None


def register(ctx):
    ctx.register_hook("transform_tool_result", redact)

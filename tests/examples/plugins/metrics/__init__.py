"""Counts in memory how often each tool was used, and how often it failed."""
import json
import os
from collections import Counter

USED, FAILED = Counter(), Counter()


def count(tool_name, result, **more):
    USED[tool_name] += 1
    try:
        FAILED[tool_name] += bool(json.loads(result).get("error"))
    except (ValueError, TypeError, AttributeError):
        pass
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "metrics.json"), "w") as out:
        json.dump({"used": USED, "failed": +FAILED}, out, sort_keys=True)


def register(ctx):
    ctx.register_hook("post_tool_call", count)

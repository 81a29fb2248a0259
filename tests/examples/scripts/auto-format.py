#!/usr/bin/env python3
"""Formats a file that was just written: no trailing spaces, one newline at the end."""
import json
import sys

path = json.load(sys.stdin).get("tool_input", {}).get("path", "")
if path.endswith(".py"):
    with open(path) as file:
        lines = [line.rstrip() for line in file.read().rstrip().split("\n")]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")

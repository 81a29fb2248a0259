#!/bin/sh
# Refuses to delete whole trees.
grep -q '"command": *"[^"]*rm -rf' && echo '{"decision": "block", "reason": "whole trees are deleted by people"}'
exit 0

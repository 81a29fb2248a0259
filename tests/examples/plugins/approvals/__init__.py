"""Runs a notifier when an approval is needed, and logs the answer."""
import os
import subprocess


def note(line):
    with open(os.path.join(os.environ["EXAMPLE_OUT"], "approvals.log"), "a") as out:
        out.write(line + "\n")


def needed(command, description, session_key, surface="", **more):
    subprocess.run([os.environ["EXAMPLE_NOTIFIER"], "%s: %s" % (description, command[:80])], check=False)


def decided(command, choice, session_key, **more):
    note("%s: %s" % (choice, command[:60]))


def register(ctx):
    ctx.register_hook("pre_approval_request", needed)
    ctx.register_hook("post_approval_response", decided)

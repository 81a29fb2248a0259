"""Shortens a very long listing and adds the number of its lines."""


def shorten(command, output, exit_code, cwd=None, task_id=None, **more):
    lines = output.splitlines()
    if command.startswith("find ") and len(lines) > 100:
        return "\n".join(lines[:10] + ["(%d paths, 10 shown, exit code %d)" % (len(lines), exit_code)])


def register(ctx):
    ctx.register_hook("transform_terminal_output", shorten)

"""Starts a web server of Hermes (`hermes serve`) and connects to its socket. Lines on stdin become messages, and
messages become lines on stdout. Ends the server when stdin is closed, as a desktop does.
"""
import asyncio
import os
import re
import secrets
import sys

import websockets


async def main(command):
    token = secrets.token_urlsafe(16)
    server = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=None,
        env=dict(os.environ, HERMES_DASHBOARD_SESSION_TOKEN=token, PYTHONUNBUFFERED="1"))
    port = await wait_until_ready(server.stdout)
    asyncio.ensure_future(copy_output(server.stdout))
    try:
        async with websockets.connect("ws://127.0.0.1:%s/api/ws?token=%s" % (port, token), max_size=None) as socket:
            asyncio.ensure_future(print_messages(socket))
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                await socket.send(line)
    finally:
        server.terminate()
        await server.wait()


async def wait_until_ready(output):
    while line := (await output.readline()).decode():
        print(line, end="", file=sys.stderr, flush=True)
        if found := re.search(r"HERMES_\w+_READY.*?port=(\d+)", line):
            return found.group(1)
    raise SystemExit("the server ended before it was ready")


async def copy_output(output):
    while line := await output.readline():
        print(line.decode(), end="", file=sys.stderr, flush=True)


async def print_messages(socket):
    async for message in socket:
        print(message, flush=True)


asyncio.run(main(sys.argv[1:]))

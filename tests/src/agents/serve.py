"""Starts a web server of Hermes' (`hermes serve`) and speaks with its socket: lines of ours become messages there,
and its messages become lines. When we hang up it is ended, as a desktop does it.
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
    port = await ready(server.stdout)
    asyncio.ensure_future(drained(server.stdout))
    try:
        async with websockets.connect("ws://127.0.0.1:%s/api/ws?token=%s" % (port, token), max_size=None) as socket:
            asyncio.ensure_future(hear(socket))
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                await socket.send(line)
    finally:
        server.terminate()
        await server.wait()


async def ready(output):
    while line := (await output.readline()).decode():
        print(line, end="", file=sys.stderr, flush=True)
        if found := re.search(r"HERMES_\w+_READY.*?port=(\d+)", line):
            return found.group(1)
    raise SystemExit("the server ended before it was ready")


async def drained(output):
    while line := await output.readline():
        print(line.decode(), end="", file=sys.stderr, flush=True)


async def hear(socket):
    async for message in socket:
        print(message, flush=True)


asyncio.run(main(sys.argv[1:]))

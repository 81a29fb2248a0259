#!/usr/bin/env python3
"""Counts the calls of each tool, from the stream of all buses: count_stream.py nats://localhost:4222"""
import asyncio
import json
import sqlite3
import sys

import nats

db = sqlite3.connect("counts.db", isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS positions (bus TEXT PRIMARY KEY, seq INTEGER)")
db.execute("CREATE TABLE IF NOT EXISTS tools (tool TEXT PRIMARY KEY, calls INTEGER)")


def count(event):
    """Counts an event once, however often it is delivered."""
    bus, seq = event["source"].removeprefix("urn:hookbus:"), event["seq"]
    last = db.execute("SELECT seq FROM positions WHERE bus = ?", [bus]).fetchone()
    if last is not None and seq <= last[0]:
        return
    if event["type"] == "hookbus.tool.before":
        db.execute(
            "INSERT INTO tools VALUES (?, 1) ON CONFLICT (tool) DO UPDATE SET calls = calls + 1",
            [event["tool"]],
        )
    db.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", [bus, seq])


async def main(url, wait):
    client = await nats.connect(url)
    events = await client.jetstream().pull_subscribe("hookbus.>", durable="count-tools")
    while True:
        try:
            messages = await events.fetch(500, timeout=wait)
        except TimeoutError:
            break  # nothing came for a while
        db.execute("BEGIN")  # one transaction for the positions and for what is counted
        for message in messages:
            count(json.loads(message.data))
        db.execute("COMMIT")
        for message in messages:
            await message.ack()
    await client.close()


asyncio.run(main(sys.argv[1], wait=float(sys.argv[2]) if len(sys.argv) > 2 else 3600))

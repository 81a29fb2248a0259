#!/usr/bin/env python3
"""Counts the calls of each tool. Gets one event per line, from the log or from NATS."""
import json
import sqlite3
import sys

db = sqlite3.connect("counts.db")
db.execute("CREATE TABLE IF NOT EXISTS positions (bus TEXT PRIMARY KEY, seq INTEGER)")
db.execute("CREATE TABLE IF NOT EXISTS tools (tool TEXT PRIMARY KEY, calls INTEGER)")

for line in sys.stdin:
    event = json.loads(line)["hookbus"]
    bus, seq = event["bus"], event["seq"]
    with db:  # one transaction for the position and for what is counted
        last = db.execute("SELECT seq FROM positions WHERE bus = ?", [bus]).fetchone()
        if last is None or seq > last[0]:
            if event["kind"] == "tool.before":
                db.execute(
                    "INSERT INTO tools VALUES (?, 1) ON CONFLICT (tool) DO UPDATE SET calls = calls + 1",
                    [event["tool"]],
                )
            db.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", [bus, seq])
    print("ok", flush=True)  # the event is handled

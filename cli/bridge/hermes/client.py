"""Sends events to hookbus: over the daemon's socket, or with the `hookbus hook` command if no daemon answers.

Promises: it never raises, never takes longer than the deadline, and starts no process while a daemon answers.
Which bus it talks to is in bridge.json alone: Hermes may have loaded the `.env` file of a repository, so variables that
begin with `HOOKBUS_` count for nothing and are not sent along.
Each event has a connection of its own, so threads and forks share nothing. Standard library only.
"""
import json
import logging
import os
import pwd
import socket
import struct
import subprocess
import sys
import threading
import time

LOG = logging.getLogger("hookbus")

PROTOCOL = 2
RECEIVED = b"!"
# A daemon that does not acknowledge an event within `HUNG` seconds is not asked again for `AVOID_FOR` seconds.
HUNG = 2.0
AVOID_FOR = 30.0
# Reserved for `hookbus hook`, in case a daemon that took the event does not answer: at most this many seconds,
# and this part of the deadline. A daemon that does not take it is given up earlier.
FALLBACK_RESERVE = 0.5
# The longest notice that is shown.
LONGEST_NOTICE = 4000
FALLBACK_PART = 0.04
# The longest path that fits into a socket address on all systems.
LONGEST_ADDRESS = 100
# No daemon of ours sends a longer answer.
LONGEST_ANSWER = 64 << 20
# Larger events are truncated, so that encoding them does not exceed the deadline.
MOST_TEXT = 64 << 20
MOST_NODES = 500_000
# How much of a truncated text is kept at either end.
KEPT_TEXT = 1 << 20
# Python refuses to print longer integers.
MOST_BITS = 10_000
# Lists and dicts that are deeper are left out of a copy.
DEEPEST = 40
# Up to this depth a list or dict gets half of the values that are left, so that some remain for what follows it.
NEAR_ROOT = 3
# The key under which the bus is told where something was left out, as dotted paths; an empty path is the payload.
INCOMPLETE = "hookbus_incomplete"
# The most places that are named, and the longest path. With more of them the payload is named, which covers all.
MOST_PLACES = 100
LONGEST_PLACE = 1000

DEFAULTS = {
    "hookbus": "hookbus",       # the program
    "version": "0.0.0",         # of the hookbus that installed this
    "home": "",                 # the home of hookbus; empty: ~/.hookbus of the user that Hermes runs as
    "deadline": 55.0,           # seconds for one event
    "gateway_deadline": 2.0,    # the same for events that all chats of a gateway wait for
    "without_daemon": "hook",   # `hook`: run `hookbus hook`; `allow`: allow the event
    "on_failure": "allow",      # `block`: block tool calls while hookbus cannot be asked
}


def _settings():
    settings = dict(DEFAULTS)
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bridge.json"), encoding="utf-8") as file:
            known = json.load(file)
        settings.update({key: known[key] for key in DEFAULTS if isinstance(known.get(key), type(DEFAULTS[key]))})
        for key in ("deadline", "gateway_deadline"):
            settings[key] = float(known.get(key, settings[key]))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        LOG.warning("hookbus: bridge.json cannot be read (%s); run `hookbus connect hermes` again", error)
    return settings


SETTINGS = _settings()


class NoDaemon(Exception):
    """The daemon did not answer; `hung`: it should not be asked again for a while."""

    def __init__(self, why, hung=False):
        super().__init__(why)
        self.hung = hung


class Unanswered(Exception):
    """Neither the daemon nor `hookbus hook` gave an answer."""


class _State:
    """State between events: until when to avoid the daemon, and which warnings were logged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.avoid_until = 0.0
        self.warned = set()


STATE = _State()


def _reset_after_fork():
    # A lock that another thread held during the fork would never be released in the child.
    global STATE
    STATE = _State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def warn_once(message, *details):
    """Logs a warning once per process, so that a bridge without a bus does not fill Hermes' log."""
    with STATE.lock:
        if message in STATE.warned:
            return
        STATE.warned.add(message)
    LOG.warning(message, *details)


def tell(notice):
    """Shows the user what the bus has to say about itself, such as a hook that is not in force. The bus sends each
    problem once per session."""
    try:
        text = notice.decode("utf-8", "replace").strip()[:LONGEST_NOTICE]
        if not text:
            return
        LOG.warning("%s", text)
        if os.environ.get("_HERMES_GATEWAY"):
            return  # its chats may have other readers than the person who runs it; the log is theirs
        cli = sys.modules.get("cli")
        if cli is not None and _has_prompt():
            cli._cprint(text)  # a line of its own above the prompt
        else:
            print(text, file=sys.stderr, flush=True)
    except Exception:
        pass  # a notice never stops an agent


def _has_prompt():
    try:
        from hermes_cli.plugins import get_plugin_manager
        return get_plugin_manager()._cli_ref is not None
    except Exception:
        return False


def deadline():
    """How long one event may take: short in an event loop, where a whole gateway would wait."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return SETTINGS["gateway_deadline"]
    return SETTINGS["deadline"]


def home():
    return SETTINGS["home"] or os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".hookbus")


class Clock:
    """The deadline of one event, from the moment it fired."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.end = time.monotonic() + seconds


def ask(raw, clock, session="", blocked=None):
    """Sends the payload `raw` and returns the answer as parsed JSON; None if there is none by the deadline. If hookbus
    cannot be asked at all, and `connect` was told to block then, the answer is `blocked`: a refusal, and its key for
    the reason."""
    try:
        return _answer(raw, clock.end, clock.seconds, session)
    except Exception as error:  # Hermes must go on in any case
        if blocked is not None and SETTINGS["on_failure"] == "block":
            warn_once("hookbus: an event could not be handled, and is blocked: %s", error)
            refusal, key = blocked
            return dict(refusal, **{key: "hookbus cannot be asked, so this is blocked: %s" % error})
        warn_once("hookbus: an event could not be handled, and passes unrecorded: %s", error)
        return None


def _answer(raw, end, seconds, session):
    event_id = _mint()
    reserve = min(FALLBACK_RESERVE, seconds * FALLBACK_PART)
    hung = time.monotonic() < STATE.avoid_until
    if not hung:
        try:
            return _ask_daemon(raw, event_id, end - reserve, session)
        except NoDaemon as why:
            if why.hung:
                hung = True
                STATE.avoid_until = time.monotonic() + AVOID_FOR
                warn_once("hookbus: the daemon does not answer (%s); `hookbus stop` ends it", why)
        except OSError:
            pass  # no daemon listens
    if SETTINGS["without_daemon"] == "allow":
        return None
    return _read(_run_hook_command(raw, event_id, end, hung, session))


def _read(answer):
    if not answer.strip():
        return None
    return json.loads(answer)


def _mint():
    """A UUIDv7 whose last bit is 0; the same id with a 1 is for the decision."""
    millis = time.time_ns() // 1_000_000
    value = int.from_bytes(millis.to_bytes(6, "big") + os.urandom(10), "big")
    value = value & ~(0xF << 76) | (7 << 76)
    value = value & ~(0x3 << 62) | (2 << 62)
    return (value & ~1).to_bytes(16, "big")


def _build():
    """The version of the installed hookbus, so that an older daemon exits in favour of a new one."""
    parts = [int(part) for part in SETTINGS["version"].split(".")[:3] if part.isdigit()]
    version = (parts + [0, 0, 0])[:3]
    try:
        written = int(os.stat(SETTINGS["hookbus"]).st_mtime)
    except OSError:
        written = 0
    return struct.pack(">IIIq", *version, written)


def _environment(session):
    """The environment as bytes, with the session of the event, which Hermes does not keep there."""
    pairs = {name: value for name, value in os.environb.items() if not name.startswith(b"HOOKBUS_")}
    if session:
        pairs[b"HERMES_SESSION_ID"] = os.fsencode(session)
    if _approves_everything():
        pairs[b"HERMES_YOLO_MODE"] = b"1"
    return pairs


def _approves_everything():
    """Whether Hermes approves everything by itself, so that the user cannot be asked."""
    approval = sys.modules.get("tools.approval")
    try:
        return bool(approval and (approval._YOLO_MODE_FROZEN or approval.is_current_session_yolo_enabled()))
    except Exception:
        return False


def _cwd():
    try:
        return os.getcwdb()
    except OSError:
        return b""


def _request(raw, event_id, time_left, session):
    parts = [
        b"call", _build(), event_id, struct.pack(">q", time.time_ns() // 1000), b"hermes", b"bridge",
        struct.pack(">Q", max(int(time_left * 1_000_000), 0)), struct.pack(">I", os.getpid()), _cwd(), raw,
    ]
    for pair in _environment(session).items():
        parts.extend(pair)
    body = b"".join(struct.pack(">Q", len(part)) + part for part in parts)
    return struct.pack(">QB", len(body) + 1, PROTOCOL) + body


def _ask_daemon(raw, event_id, end, session):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        time_left = end - time.monotonic()
        stream.settimeout(max(min(HUNG, time_left / 2), 0.001))
        _connect(stream)
        try:
            stream.sendall(_request(raw, event_id, time_left, session))
            received = stream.recv(1)
        except TimeoutError as error:
            raise NoDaemon("it does not take events", hung=True) from error
        if received != RECEIVED:
            raise NoDaemon("it declined")
        try:
            length = struct.unpack(">Q", _exactly(stream, 8, end))[0]
            if length > LONGEST_ANSWER:
                raise NoDaemon("it announces an answer of %d bytes" % length, hung=True)
            body = _exactly(stream, length, end)
        except TimeoutError as error:
            raise NoDaemon("no answer within the deadline", hung=True) from error
    try:
        kind, rest = _part(body[1:])
        if kind != b"answer":
            raise NoDaemon("it declined")
        text, rest = _part(rest)
        answer = _read(text)
        notice = _part(rest)[0] if rest else b""
    except (struct.error, ValueError, RecursionError) as error:
        raise NoDaemon("its answer cannot be read: %s" % error, hung=True) from error
    tell(notice)
    return answer


def _connect(stream):
    address = os.path.join(home(), "bus.sock")
    if len(os.fsencode(address)) <= LONGEST_ADDRESS:
        stream.connect(address)
        return
    handle = os.open(home(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        stream.connect("/proc/self/fd/%d/bus.sock" % handle)
    finally:
        os.close(handle)


def _exactly(stream, count, end):
    pieces = []
    while count:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        stream.settimeout(left)
        piece = stream.recv(min(count, 1 << 20))
        if not piece:
            raise NoDaemon("it closed the connection")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _part(body):
    length = struct.unpack(">Q", body[:8])[0]
    if length > len(body) - 8:
        raise ValueError("it is too short")
    return body[8:8 + length], body[8 + length:]


def _run_hook_command(raw, event_id, end, hung, session):
    """Runs `hookbus hook`, which does the daemon's work itself. With the same id, so that nothing is recorded twice."""
    left = end - time.monotonic()
    program = SETTINGS["hookbus"]
    if left <= 0:
        raise Unanswered("no answer within the deadline")
    # Not looked up on PATH, which is the agent's.
    if not (os.path.isabs(program) and os.path.exists(program)):
        raise Unanswered("neither a daemon nor the program %s answers; run `hookbus connect hermes` again" % program)
    words = [program, "hook", "hermes", "--home", home(), "--on-failure", SETTINGS["on_failure"], "--wire", "bridge",
             "--id", event_id.hex(), "--deadline", "%.3f" % (left - min(left / 10, 0.05))]
    if hung:
        words.append("--without-daemon")
    try:
        ran = subprocess.run(words, input=raw, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=_environment(session), timeout=left)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unanswered("`hookbus hook` failed: %s" % error) from error
    if ran.returncode == 0:
        tell(ran.stderr)
    elif not ran.stdout:
        raise Unanswered("`hookbus hook` exited with %d" % ran.returncode)
    return ran.stdout


# ---- payloads -------------------------------------------------------------------------------------

TOP_LEVEL = ("tool_name", "args", "session_id", "parent_session_id")


def payload(name, fields):
    """The event in the form that Hermes' own shell hooks get."""
    extra = {key: value for key, value in fields.items() if key not in TOP_LEVEL}
    args = fields.get("args")
    if args is not None and not isinstance(args, dict):
        extra["args"] = _text(args)  # `tool_input` has no place for it, and rules should see it
    return encode({
        "hook_event_name": name,
        "tool_name": fields.get("tool_name"),
        "tool_input": args if isinstance(args, dict) else None,
        "session_id": fields.get("session_id") or fields.get("parent_session_id") or "",
        "cwd": os.fsdecode(_cwd()),
        "extra": extra,
    })


def gateway_payload(name, context):
    """An event of the gateway, in the same form."""
    return encode({
        "hook_event_name": name,
        "tool_name": None,
        "tool_input": None,
        "session_id": context.get("session_id") or "",
        "cwd": os.fsdecode(_cwd()),
        "extra": {key: value for key, value in context.items() if key != "session_id"},
    })


def encode(event):
    """Encodes an event as JSON, whatever is in it: unknown types become text, and too large values are truncated. Where
    something was left out is named under `INCOMPLETE`, so that the bus takes no part for the whole."""
    try:
        heavy = is_heavy(event)
    except Exception:  # another thread is changing it
        heavy = True
    as_it_is = () if heavy else (
        lambda: json.dumps(event, ensure_ascii=False, default=str).encode("utf-8"),
        lambda: json.dumps(event, default=str).encode("ascii"),  # lone surrogates
    )
    for write in as_it_is + (
        lambda: json.dumps(_Plain().event(event)).encode("ascii"),  # odd keys, cycles, raising __str__
    ):
        try:
            return write()
        except Exception:  # also from a __str__ of another plugin
            continue
    # Nothing of it can be encoded; send at least which event it was.
    known = ("hook_event_name", "tool_name", "session_id")
    return json.dumps({INCOMPLETE: [""], **{name: _text(event.get(name) or "") for name in known}}).encode("ascii")


def is_heavy(value):
    """Whether `value` is too large to be encoded in time. A cycle counts as too large."""
    text, nodes, stack = 0, 0, [value]
    while stack:
        one = stack.pop()
        nodes += 1
        if isinstance(one, (str, bytes, bytearray)):
            text += len(one)
        elif isinstance(one, dict):
            stack.extend(one.values())
            nodes += len(one)
        elif isinstance(one, (list, tuple, set, frozenset)):
            stack.extend(one)
        if text > MOST_TEXT or nodes + len(stack) > MOST_NODES:
            return True
    return False


CONTAINERS = (dict, list, tuple, set, frozenset)


class _Plain:
    """Makes a copy that can be encoded: no cycles, only text as keys, and no more than the limits allow. In a dict, texts
    and numbers come before lists and dicts: padding in a list must not push a command out."""

    def __init__(self):
        self.nodes = 0
        self.most = MOST_NODES
        self.text_left = MOST_TEXT
        self.around = set()   # the containers around the present value, to find cycles
        self.keys = []        # the keys on the way to the present value
        self.incomplete = {}  # the places where something was left out; a dict, because it keeps the order

    def event(self, event):
        copy = self.value(event)
        # First, so that a reader who keeps only the beginning of an event has it.
        return {INCOMPLETE: list(self.incomplete), **copy} if self.incomplete else copy

    def value(self, value):
        self.nodes += 1
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            return hex(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, CONTAINERS):
            return self.inside(value)
        return self.text(value)

    def inside(self, value):
        depth = len(self.around)
        if id(value) in self.around:
            return "<left out by hookbus: a cycle>"  # the copy has it, further out
        if depth >= DEEPEST:
            self.note_incomplete()
            return "<left out by hookbus: too deep>"
        most = self.most
        if 0 < depth <= NEAR_ROOT:
            self.most -= max(most - self.nodes, 0) // 2
        self.around.add(id(value))
        try:
            return self.entries(value) if isinstance(value, dict) else self.items(value)
        finally:
            self.around.discard(id(value))
            self.most = most

    def entries(self, value):
        copy = {}
        for of_containers in (False, True):
            for key, inner in value.items():
                if isinstance(inner, CONTAINERS) != of_containers:
                    continue
                if self.nodes >= self.most:
                    self.note_incomplete()
                    return copy
                name = self.text(key)
                if name in copy:  # two keys with the same text
                    self.note_incomplete()
                self.keys.append(name)
                copy[name] = self.value(inner)
                self.keys.pop()
        return copy

    def items(self, value):
        copy = []
        for item in value:
            if self.nodes >= self.most:
                self.note_incomplete()
                break
            copy.append(self.value(item))
        return copy

    def text(self, value):
        if isinstance(value, (bytes, bytearray)) and len(value) > KEPT_TEXT:
            self.note_incomplete()
            value = bytes(value[:KEPT_TEXT])
        text = _text(value)
        if len(text) > max(self.text_left, 2 * KEPT_TEXT) or len(text) > MOST_TEXT // 4:
            self.note_incomplete()
            cut = len(text) - 2 * KEPT_TEXT
            mark = "<%d characters left out by hookbus>" % cut
            text = text[:KEPT_TEXT] + mark + text[-KEPT_TEXT:]
        self.text_left -= len(text)
        return text

    def note_incomplete(self):
        place = ".".join(self.keys) if sum(map(len, self.keys)) <= LONGEST_PLACE else ""
        if place not in self.incomplete:
            self.incomplete[place if len(self.incomplete) < MOST_PLACES else ""] = None


def _text(value):
    try:
        return value if isinstance(value, str) else str(value)
    except Exception:
        return "<%s>" % type(value).__name__


def session_now():
    """The session that this thread or task works for, as Hermes keeps it."""
    try:
        from gateway.session_context import get_session_env
        return get_session_env("HERMES_SESSION_ID") or ""
    except Exception:
        return os.environ.get("HERMES_SESSION_ID", "")

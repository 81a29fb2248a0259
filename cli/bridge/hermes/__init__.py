"""The bridge between Hermes and hookbus: sends every hook call of this Hermes to the bus as an event, and returns the
answer of the bus to Hermes. It never raises into Hermes and never takes longer than its deadline.
"""
import dataclasses
import enum
import threading
from collections import OrderedDict

from . import client

# The hooks of Hermes 0.19, for versions without `VALID_HOOKS`.
KNOWN = (
    "api_request_error kanban_task_blocked kanban_task_claimed kanban_task_completed on_session_end "
    "on_session_finalize on_session_reset on_session_start post_api_request post_approval_response post_llm_call "
    "post_tool_call pre_api_request pre_approval_request pre_gateway_dispatch pre_llm_call pre_tool_call pre_verify "
    "subagent_start subagent_stop transform_llm_output transform_terminal_output transform_tool_result"
).split()

# The events that can be refused: the refusal, and its key for the reason.
BLOCKED = {
    "pre_tool_call": ({"action": "block"}, "message"),
    "pre_gateway_dispatch": ({"action": "skip"}, "reason"),
}

# How many answers to tool requests are kept until their hook is called.
MAX_PENDING = 256


def register(ctx):
    """Called by Hermes when it loads or reloads its plugins."""
    for name in sorted(_hooks_of_this_hermes()):
        ctx.register_hook(name, _listener(name))
    middleware = getattr(ctx, "register_middleware", None)
    if middleware is not None:
        middleware("tool_request", on_tool_request)


def _hooks_of_this_hermes():
    try:
        from hermes_cli.plugins import VALID_HOOKS
        return set(VALID_HOOKS) or set(KNOWN)
    except Exception:
        return set(KNOWN)


def _listener(name):
    special = {"pre_tool_call": on_tool_call, "pre_gateway_dispatch": on_message}.get(name)

    def listen(**fields):
        try:
            clock = client.Clock(client.deadline())
            return special(fields, clock) if special else _answer_to(name, fields, clock)
        except Exception as error:
            client.warn_once("hookbus: %s could not be sent: %s", name, error)
            return None

    listen.__name__ = listen.__qualname__ = "hookbus[%s]" % name
    return listen


def _ask(name, fields, clock, session=""):
    session = fields.get("session_id") or session or client.session_now()
    return client.ask(client.payload(name, fields), clock, session, BLOCKED.get(name))


def _answer_to(name, fields, clock):
    answer = _ask(name, fields, clock)
    wanted = str if name.startswith("transform_") else dict
    return answer if isinstance(answer, wanted) else None


# ---- tool calls: sent once, by the middleware, while their input can still be changed ---------------

class _PendingAnswers:
    """Answers about tool calls whose `pre_tool_call` hook has not been called yet."""

    def __init__(self):
        self.lock = threading.Lock()
        self.answers = OrderedDict()

    def put(self, key, sent_args, answer):
        with self.lock:
            self.answers[key] = (sent_args, answer)
            while len(self.answers) > MAX_PENDING:
                self.answers.popitem(last=False)

    def take(self, key):
        with self.lock:
            return self.answers.pop(key, None)


PENDING = _PendingAnswers()


def _reset_after_fork():
    global PENDING
    PENDING = _PendingAnswers()


if hasattr(client.os, "register_at_fork"):
    client.os.register_at_fork(after_in_child=_reset_after_fork)


def _key(fields):
    call = fields.get("tool_call_id")
    # Calls made by code that the agent runs have no id; their hook is called in the same thread.
    return (fields.get("turn_id"), call) if call else (threading.get_ident(), fields.get("tool_name"))


def _snapshot(args):
    """The present input as bytes, because later plugins may change it in place. None if it is too large to compare;
    then the call is sent again."""
    return None if client.is_heavy(args) else client.encode({"args": args})


def on_tool_request(**fields):
    """Middleware of Hermes: the only place where the input of a tool can be changed."""
    try:
        clock = client.Clock(client.deadline())
        args = fields.get("args")
        if not isinstance(args, dict):
            return None
        own = ("original_args", "middleware_schema_version", "telemetry_schema_version")
        call = {key: value for key, value in fields.items() if key not in own}
        call.setdefault("middleware_trace", [])
        call["telemetry_schema_version"] = fields.get("telemetry_schema_version")
        answer = _ask("pre_tool_call", call, clock)
        answer = answer if isinstance(answer, dict) else {}
        changed = answer.get("args")
        changed = changed if isinstance(changed, dict) else None
        PENDING.put(_key(fields), _snapshot(args if changed is None else changed), answer)
        if changed is None:
            return None
        return {"args": changed, "source": "hookbus", "reason": "a hook changed the input"}
    except Exception as error:
        client.warn_once("hookbus: a tool request could not be sent: %s", error)
        return None


def on_tool_call(fields, clock):
    pending = PENDING.take(_key(fields))
    if pending is not None and pending[0] is not None and pending[0] == _snapshot(fields.get("args")):
        answer = pending[1]
    else:
        # Another plugin has changed the input: send the input that will really run.
        answer = _ask("pre_tool_call", fields, clock)
        if isinstance(answer, dict) and "args" in answer and answer.get("action") != "block":
            return {"action": "block", "message": "a hook wanted to change the input of this call, too late to do so"}
    return answer if isinstance(answer, dict) and "action" in answer else None


# ---- messages: objects of the gateway, reduced to plain data ----------------------------------------

def on_message(fields, clock):
    fields = dict(fields)
    message, store = fields.get("event"), fields.get("session_store")
    session = _session_of(message, store)
    fields["event"] = reduced(message)
    fields["gateway"] = {"platforms": _platforms(fields.get("gateway"))}
    fields["session_store"] = session
    answer = _ask("pre_gateway_dispatch", fields, clock, session.get("session_id") or "")
    return answer if isinstance(answer, dict) else None


def reduced(value, depth=0):
    """A message as plain data: texts, ids and its source, without objects of the platform."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and depth < 4:
        names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: reduced(getattr(value, name, None), depth + 1) for name in names if name != "raw_message"}
    if isinstance(value, dict) and depth < 4:
        return {str(key): reduced(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and depth < 4:
        return [reduced(item, depth + 1) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return client._text(value)


def _platforms(gateway):
    try:
        return sorted(str(reduced(platform)) for platform in gateway.adapters)
    except Exception:
        return []


def _session_of(message, store):
    found = {}
    try:
        found["session_key"] = store._generate_session_key(message.source)
        found["session_id"] = store.peek_session_id(found["session_key"])
    except Exception:
        pass  # another version of Hermes; the message itself has its source
    return found

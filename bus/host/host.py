"""Runs one Hermes plugin directory (`plugin.yaml` + `register(ctx)`) or gateway hook directory (`HOOK.yaml` +
`handler.py`), unmodified, outside of Hermes. Speaks JSON lines: each question has a number, and its answer the same.

A question marked `looks_on` has no answer: it is for callbacks that are not waited for. They have a thread of their
own, one after the other. A decision gives those before it a moment, so that what they count is counted, and then
overtakes them. With two at work at once both stand where the later question stands.

The plugin's own prints go to stderr; the protocol has descriptors of its own. When the bus hangs up, this ends at
once, whatever the plugin is doing. Standard library only.
"""
import asyncio
import importlib.util
import inspect
import json
import logging
import os
import queue
import sys
import threading
import traceback
import types

NAMESPACE = "hermes_plugins"
# How long a decision waits for the onlookers before it; for one that is slow, only once.
MOMENT = 0.25
# Onlookers that wait; more than this many are left out, and that is said.
MOST_WAITING = 10_000
sys.dont_write_bytecode = True  # nothing of ours in a directory of theirs


def main():
    questions, answers = take_the_line()
    setup = questions.get()
    setup["folder"] = os.fsdecode(raw(setup["folder"]))
    limit_memory(setup.get("memory"))
    enter(setup)
    try:
        host = Gateway(setup) if setup["form"] == "gateway" else Plugin(setup)
        answers(setup, {"hooks": host.hooks(), "unused": sorted(host.unused)})
    except BaseException as error:  # a plugin may even call exit()
        traceback.print_exc()
        answers(setup, {"error": said(error)})
        return
    onlookers = Onlookers(host)
    env = ENTERED[0]
    while True:
        question = questions.get()
        # Told only when it changes, and in the order of the questions, which an answer may not keep.
        env = question["env"] = question.get("env") or env
        if question.get("looks_on"):
            onlookers.put(question)
            continue
        onlookers.give_a_moment()
        enter(question)
        answers(question, host.answer(question))


class Onlookers:
    """Callbacks that nobody waits for, in the order of their events."""

    def __init__(self, host):
        self.host = host
        self.waiting = queue.Queue()
        self.change = threading.Condition()
        self.put_in = self.done = self.overtaken = 0
        threading.Thread(target=self.work, daemon=True).start()

    def put(self, question):
        if self.put_in - self.done >= MOST_WAITING:
            print("hookbus: too slow, %s goes by unseen" % question.get("name"), file=sys.stderr)
            return
        self.put_in += 1
        self.waiting.put(question)

    def work(self):
        while True:
            question = self.waiting.get()
            enter(question)
            for error in self.host.answer(question)["errors"]:
                print("hookbus: at %s: %s" % (question.get("name"), error), file=sys.stderr)
            with self.change:
                self.done += 1
                self.change.notify_all()

    def give_a_moment(self):
        with self.change:
            at_work = self.done + 1
            if self.overtaken == at_work or self.done == self.put_in:
                return
            if not self.change.wait_for(lambda: self.done == self.put_in, MOMENT):
                self.overtaken = self.done + 1


def take_the_line():
    """Moves the protocol away from where a plugin could print into it."""
    line_in, line_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    mine = os.getpid()
    # A child that a callback forks must not answer in our name.
    os.register_at_fork(after_in_child=line_out.close)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    questions = queue.Queue()

    def listen():
        for line in line_in:
            questions.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()

    def answer(question, value):
        if os.getpid() != mine:
            os._exit(0)
        line = memoryview(encoded(dict(value, id=question.get("id"))) + b"\n")
        while line:
            line = line[line_out.write(line):]

    return questions, answer


def encoded(value):
    for write in (lambda: json.dumps(value, default=str), lambda: json.dumps(plain(value, 0))):
        try:
            return write().encode()
        except Exception as error:
            why = said(error)
    errors = ["what it returned cannot be written: %s" % why]
    return json.dumps({"id": value.get("id"), "returns": [], "errors": errors}).encode()


def plain(value, depth):
    """The same without what JSON has no words for: a block with something odd in it is still a block."""
    if isinstance(value, int) and value.bit_length() > 10_000:
        return hex(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth < 12 and isinstance(value, dict):
        return {text(key): plain(item, depth + 1) for key, item in value.items()}
    if depth < 12 and isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    return text(value)


def text(value):
    try:
        return str(value)
    except Exception:
        return "<%s>" % type(value).__name__


def limit_memory(most):
    if most:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


ENTERED = [{name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}]


def enter(question):
    """Stands where the agent stands: its directory, its environment."""
    env = question.get("env") or ENTERED[0]
    if env is not ENTERED[0]:
        ENTERED[0] = env
        os.environ.clear()
        os.environb.update({raw(name): raw(value) for name, value in env.items()})
    try:
        os.chdir(raw(question.get("cwd") or "/"))
    except OSError:
        os.chdir("/")


def raw(text):
    """Names and values need not be UTF-8: each character stands for one byte."""
    return text.encode("latin-1")


def said(error):
    return "%s: %s" % (type(error).__name__, error)


def called(callback, *args, **kwargs):
    """What a callback returns; a coroutine is awaited, which Hermes itself forgets to do."""
    result = callback(*args, **kwargs)
    if not inspect.isawaitable(result):
        return result
    value, error = asyncio.run_coroutine_threadsafe(finished(result), lasting_loop()).result()
    if error is not None:
        raise error
    return value


async def finished(result):
    try:
        return await result, None
    except BaseException as error:  # an exit() would end the loop for all
        return None, error


LOOP = []
LOOP_LOCK = threading.Lock()


def lasting_loop():
    """One loop for all calls: a task that a callback leaves behind goes on."""
    with LOOP_LOCK:
        if not LOOP:
            LOOP.append(asyncio.new_event_loop())
            threading.Thread(target=LOOP[0].run_forever, daemon=True).start()
        return LOOP[0]


class Thing(types.SimpleNamespace):
    """What was an object in Hermes: fields as attributes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def get(self, name, default=None):
        return self.__dict__.get(name, default)


class Word(str):
    """A member of an enumeration: a text that also has a value."""

    @property
    def value(self):
        return str(self)


def thing(value, name=""):
    if isinstance(value, dict) and name == "metadata":
        return value
    if isinstance(value, dict):
        return Thing(**{str(key): thing(item, key) for key, item in value.items()})
    if isinstance(value, list):
        return [thing(item) for item in value]
    return Word(value) if isinstance(value, str) and name in ("platform", "message_type") else value


class Manifest(types.SimpleNamespace):
    """`plugin.yaml`, with what Hermes fills in."""


class Context:
    """What a plugin gets to register with. Hooks and middleware count; the rest is accepted and reported."""

    def __init__(self, host, manifest):
        self._host = host
        self.manifest = manifest
        self.profile_name = os.environ.get("HERMES_PROFILE") or "default"
        self.llm = Thing()

    def register_hook(self, name, callback):
        self._host.callbacks.setdefault(name, []).append(callback)

    def register_middleware(self, kind, callback):
        if kind == "tool_request":
            self._host.middleware.append(callback)
        else:
            self._host.unused.add("middleware %s" % kind)

    def inject_message(self, *args, **kwargs):
        return False

    def dispatch_tool(self, name, *args, **kwargs):
        return json.dumps({"error": "hookbus runs the hooks of this plugin, and has no tool %s" % name})

    def __getattr__(self, name):
        if not name.startswith("register_"):
            raise AttributeError(name)

        def ignored(*args, **kwargs):
            self._host.unused.add(name)

        return ignored


class Plugin:
    def __init__(self, setup):
        self.callbacks, self.middleware, self.unused = {}, [], set()
        manifest = Manifest(**setup["manifest"])
        key = setup["key"]
        manifest.key, manifest.path, manifest.source = key, setup["folder"], "user"
        package = types.ModuleType(NAMESPACE)
        package.__path__ = []
        sys.modules[NAMESPACE] = package
        name = "%s.%s" % (NAMESPACE, key.replace("/", "__").replace("-", "_"))
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(setup["folder"], "__init__.py"), submodule_search_locations=[setup["folder"]])
        module = importlib.util.module_from_spec(spec)
        module.__package__, module.__path__ = name, [setup["folder"]]
        sys.modules[name] = module
        spec.loader.exec_module(module)
        module.register(Context(self, manifest))

    def hooks(self):
        return sorted(set(self.callbacks) | ({"pre_tool_call"} if self.middleware else set()))

    def answer(self, question):
        name, errors, returns = question["name"], [], []
        fields = kwargs_of(name, question["payload"])
        changed = None
        if name == "pre_tool_call":
            for callback in self.middleware:
                result = self.one(callback, dict(fields, original_args=question["payload"].get("tool_input")), errors)
                if isinstance(result, dict) and isinstance(result.get("args"), dict):
                    changed = fields["args"] = fields["arguments"] = result["args"]
        for callback in self.callbacks.get(name, ()):
            result = self.one(callback, fields, errors)
            if name == "pre_llm_call" and isinstance(result, dict) and result.get("context"):
                result = dict(result, context=text(result["context"]))  # as Hermes does
            if result is not None:
                returns.append(result)
        answer = {"returns": returns, "errors": errors}
        if changed is not None:
            answer["args"] = changed
        return answer

    @staticmethod
    def one(callback, fields, errors):
        try:
            return called(callback, **fitting(callback, fields))
        except BaseException as error:
            traceback.print_exc()
            errors.append("%s raised %s" % (getattr(callback, "__name__", "a callback"), said(error)))
            return None


def kwargs_of(name, payload):
    """What Hermes passes to a callback, rebuilt from what it tells a shell hook; with the older names beside it."""
    fields = dict(payload.get("extra") or {})
    session = payload.get("session_id") or ""
    if name.startswith("subagent_"):
        fields["parent_session_id"] = session
    else:
        fields["session_id"] = session
    if payload.get("tool_name") is not None or name in ("pre_tool_call", "post_tool_call", "transform_tool_result"):
        fields["tool_name"] = payload.get("tool_name") or ""
        fields["args"] = fields["arguments"] = payload.get("tool_input") or {}
    if "returncode" in fields:
        fields["exit_code"] = fields["returncode"]
    fields.setdefault("cwd", payload.get("cwd"))
    fields.setdefault("telemetry_schema_version", "hermes.observer.v1")
    if name == "pre_gateway_dispatch":
        for key in ("event", "gateway", "session_store"):
            fields[key] = thing(fields.get(key))
    return fields


def fitting(callback, fields):
    """Without what a callback does not name, if it names everything it takes."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return fields
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return fields
    names = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in fields.items() if name in names}


class Gateway:
    def __init__(self, setup):
        self.unused = set()
        name = "hermes_hook_%s" % setup["manifest"].get("name", os.path.basename(setup["folder"]))
        spec = importlib.util.spec_from_file_location(name, os.path.join(setup["folder"], "handler.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        self.handle = module.handle
        self.events = [str(event) for event in setup["manifest"].get("events") or []]

    def hooks(self):
        return self.events

    def answer(self, question):
        payload = question["payload"]
        context = dict(payload.get("extra") or {})
        if payload.get("session_id"):
            context["session_id"] = payload["session_id"]
        try:
            result = called(self.handle, question["name"], context)
            return {"returns": [] if result is None else [result], "errors": []}
        except BaseException as error:
            traceback.print_exc()
            return {"returns": [], "errors": ["handle raised %s" % said(error)]}


logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
main()

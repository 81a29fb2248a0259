"""Runs one Hermes plugin directory (`plugin.yaml` + `register(ctx)`) or gateway hook directory (`HOOK.yaml` +
`handler.py`), unmodified, outside of Hermes. Speaks JSON lines: each question has a number, and its answer the same.
After the line of a question come as many bytes of payload as it says, so that one that is too large costs itself only.

A question marked `looks_on` has no answer: it is for callbacks that are not waited for. All callbacks run in one
thread, the one the plugin was loaded in, in the order of their events, as Hermes itself calls them: what a plugin
counts is counted, and what belongs to a thread stays with it. Only a decision that has waited too long behind an
onlooker overtakes it, in a thread of its own; with two at work at once both stand where the later question stands.

The plugin's own prints go to stderr; the protocol has descriptors of its own. When the bus hangs up, what was told is
finished and the plugin's exit handlers run, once the threads that it left running have ended, as in any Python; it all
ends after a few seconds. A small process beside this one sees to that, whatever the plugin is doing, and ends an
onlooker that hangs. Standard library only.
"""
import ast
import asyncio
import atexit
import collections
import contextvars
import copy
import importlib.machinery
import importlib.util
import inspect
import io
import json
import logging
import mmap
import os
import queue
import select
import signal
import struct
import sys
import threading
import time
import traceback
import types

NAMESPACE = "hermes_plugins"
# How long a decision waits for the onlookers before it; for one that is slow, only once. The first onlooker of all
# may have something to load.
MOMENT, FIRST_MOMENT = 1.0, 5.0
# How long it all may take to end.
FAREWELL = 5
# Onlookers that wait, and the bytes of their payloads; what is more is left out, and that is said.
MOST_WAITING, MOST_BYTES = 10_000, 64 << 20
sys.dont_write_bytecode = True  # nothing of ours in a directory of theirs
if sys.path and not sys.path[0]:
    del sys.path[0]  # the directory of the agent: what lies there is nothing to import


def main():
    atexit.register(end_with_all_children, os.getpid())  # registered first, so it comes last
    watchdog = Watchdog()
    questions, answers = take_the_line()
    setup = questions.get()
    if setup is None:
        return
    Printed.speaker = setup["key"]
    setup["folder"] = os.fsdecode(raw(setup["folder"]))
    limit_memory(setup.get("memory"))
    enter(setup)
    load_from_source(setup["folder"])
    try:
        host = Gateway(setup) if setup["form"] == "gateway" else Plugin(setup)
        answers(setup, {"hooks": host.hooks(), "unused": sorted(host.unused)})
    except BaseException as error:  # a plugin may even call exit()
        show_trace()
        answers(setup, {"error": said(error)})
        return
    work = Work(host, answers, watchdog)
    threading.Thread(target=or_end, args=(work.take_in, questions), daemon=True).start()
    work.run()


class Work:
    """Questions, in the order they came."""

    def __init__(self, host, answers, watchdog):
        self.host, self.answers, self.watchdog = host, answers, watchdog
        self.contexts = Contexts()
        self.mine = os.getpid()
        self.change = threading.Condition()
        self.waiting, self.bytes = collections.deque(), 0
        self.begun, self.is_busy, self.unseen = 0, False, 0
        # The onlooker that was overtaken: it is not waited for again.
        self.overtaken = None

    def run(self):
        """The plugin's own thread, until the bus hangs up."""
        while True:
            with self.change:
                self.is_busy = False
                self.change.wait_for(lambda: self.waiting)
                question = self.waiting.popleft()
                self.bytes -= size_of(question)
                self.begun, self.is_busy = self.begun + 1, True
                self.change.notify_all()
            if question is None:
                return
            if question.get("looks_on"):
                self.watchdog.watch(question)
            self.work_on(question)
            self.watchdog.rest()

    def take_in(self, questions):
        env = ENTERED[0]
        while True:
            question = questions.get()
            if question is not None:
                # Told only when it changes, and in the order of the questions, which an answer may not keep.
                env = question["env"] = question.get("env") or env
            looks_on = question is not None and question.get("looks_on")
            if looks_on and (len(self.waiting) >= MOST_WAITING or self.bytes >= MOST_BYTES):
                print("hookbus: too slow, %s goes by unseen" % question.get("name"), file=sys.stderr)
                self.unseen += 1
                continue
            self.put(question)
            if question is None:
                return
            if not looks_on and self.overtakes(question):
                self.work_on(question, apart=True)

    def put(self, question):
        with self.change:
            self.waiting.append(question)
            self.bytes += size_of(question)
            self.change.notify_all()

    def overtakes(self, question):
        """Whether a decision has waited too long; it is not in line any more then."""
        with self.change:
            moment = min(FIRST_MOMENT if self.begun <= 1 else MOMENT, question.get("limit", MOMENT) / 2)
            if self.is_busy and self.overtaken == self.begun:
                moment = 0
            # Nobody is in line behind a decision: whoever asks waits for the answer first.
            if self.change.wait_for(lambda: not (self.waiting and self.waiting[-1] is question), moment):
                return False
            self.overtaken = self.begun
            self.waiting.pop()
            self.bytes -= size_of(question)
            return True

    def behind(self, apart):
        """How many events are not heard yet, or never will be, though they came before."""
        with self.change:
            return self.unseen + (len(self.waiting) + self.is_busy if apart else 0)

    def work_on(self, question, apart=False):
        behind = self.behind(apart)
        try:
            enter(question)
            question["payload"] = read_payload(question)
            context = self.contexts.of(question)
            # One context is in one thread at a time.
            answer = (context.copy() if apart else context).run(self.host.answer, question)
        except BaseException as error:  # an event that is not as it should be costs itself, and not the plugin
            show_trace()
            answer = {"returns": [], "errors": ["it could not be asked: %s" % said(error)]}
        if os.getpid() != self.mine:
            os._exit(0)  # a child that a callback forked has no more to do here
        if question.get("looks_on"):
            for error in answer["errors"]:
                print("hookbus: at %s: %s" % (question.get("name"), error), file=sys.stderr)
        else:
            self.answers(question, dict(answer, behind=behind))


def size_of(question):
    return question["size"] if question else 0


def read_payload(question):
    """Read when it is needed: until then it takes no more room than it has bytes."""
    payload = question.pop("payload")
    try:
        if payload is None:
            raise MemoryError
        payload = str(payload, "utf-8")
        return json.loads(payload)
    except MemoryError:
        why = "%.0f MiB of payload are too much for it; raise `memory`" % (question["size"] / (1 << 20))
        raise MemoryError(why) from None


class Contexts:
    """A context (`contextvars`) for each turn, as in Hermes, where a turn has a thread or a copy of its own: what one
    turn leaves behind there is nothing to the next."""

    MOST = 1000

    def __init__(self):
        self.lock = threading.Lock()
        self.first = contextvars.copy_context()
        self.sessions = collections.OrderedDict()

    def of(self, question):
        session = question.get("session") or ""
        turn = (question["payload"].get("extra") or {}).get("turn_id")
        with self.lock:
            known, context = self.sessions.pop(session, (None, None))
            if context is None or (turn and known and turn != known):
                context = self.first.copy()
            self.sessions[session] = (turn or known, context)
            while len(self.sessions) > self.MOST:
                self.sessions.popitem(last=False)
        return context


class Watchdog:
    """A process beside this one, in its group, that nothing a plugin does can hold up. It ends the group when this
    process is gone, a while after the bus hung up, and when an onlooker is over its time."""

    LOOKS_EVERY = 1.0
    # Until when an onlooker may take, and what it looks on at.
    NOTE = struct.Struct("d100s")

    def __init__(self):
        self.note = mmap.mmap(-1, self.NOTE.size)  # shared, so that a note costs nothing
        host = os.getpid()
        ear, mouth = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.close(mouth)
            # Nobody's child: a plugin that waits for all of its children must not wait for this.
            if os.fork() == 0:
                self.guard(host, ear)
            os._exit(0)
        os.close(ear)
        os.waitpid(middle, 0)
        os.register_at_fork(after_in_child=lambda: os.close(mouth))  # its closing says that we are gone

    def watch(self, question):
        if question.get("timeout"):
            name = str(question.get("name")).encode("ascii", "replace")
            self.NOTE.pack_into(self.note, 0, time.monotonic() + question["timeout"], name)

    def rest(self):
        struct.pack_into("d", self.note, 0, 0)

    def guard(self, host, ear):
        poll, end = select.poll(), None
        poll.register(ear, 0)
        poll.register(0, 0)
        while True:
            until, name = self.NOTE.unpack_from(self.note, 0)
            now = time.monotonic()
            if until and now >= until:
                self.tell(name.rstrip(b"\0").decode())
                break
            if end and now >= end:
                break
            gone = [one for one, _ in poll.poll(self.LOOKS_EVERY * 1000)]
            if ear in gone:
                break
            if 0 in gone:
                poll.unregister(0)
                end = now + FAREWELL + 1
        os.killpg(host, signal.SIGKILL)

    @staticmethod
    def tell(name):
        why = "%s took longer than the hook's timeout; it was ended, and what came after it was not heard" % name
        for where, line in ((1, json.dumps({"over": why})), (2, "hookbus: %s" % why)):
            try:
                os.write(where, (line + "\n").encode())
            except OSError:
                pass  # the bus has hung up, or the disk is full


def end_with_all_children(mine):
    """Nothing that a plugin started outlives it."""
    if os.getpid() == mine and os.getpgrp() == mine:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # a plugin may have put anything there
            os.killpg(mine, signal.SIGKILL)


class Printed(io.FileIO):
    """Where a plugin prints to, each line with the time and who it is: many print to the same file. A disk that is
    full is the print's trouble, and not that of whoever printed."""

    speaker = "?"
    at_start = True

    def write(self, data):
        data = bytes(data)
        size, left = len(data), memoryview(self.marked(data))
        try:
            while left:
                left = left[super().write(left):]
        except OSError:
            pass
        return size

    def marked(self, data):
        if not data:
            return data
        mark = "%s %s: " % (time.strftime("%Y-%m-%d %H:%M:%S"), Printed.speaker)
        mark = mark.encode(errors="backslashreplace")
        start = mark if self.at_start else b""
        self.at_start = data.endswith(b"\n")
        body, end = (data[:-1], b"\n") if self.at_start else (data, b"")
        return start + body.replace(b"\n", b"\n" + mark) + end


def print_without_fail():
    for name, where in (("stdout", 1), ("stderr", 2)):
        printed = Printed(where, "w", closefd=False)
        # Not even a text that is none makes a print fail.
        stream = io.TextIOWrapper(printed, sys.stderr.encoding, "backslashreplace", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)


def show_trace():
    try:
        traceback.print_exc()
    except Exception:  # in memory as well, there may be no room for it
        pass


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
            question = json.loads(line)
            question["payload"] = take(line_in, question["size"])
            questions.put(question)
        questions.put(None)
        threading.Event().wait(FAREWELL)
        end_with_all_children(mine)
        os._exit(0)

    threading.Thread(target=or_end, args=(listen,), daemon=True).start()

    def answer(question, value):
        if os.getpid() != mine:
            os._exit(0)
        line = memoryview(encoded(dict(value, id=question.get("id"))) + b"\n")
        try:
            while line:
                line = line[line_out.write(line):]
        except BrokenPipeError:
            pass  # the bus has hung up

    return questions, answer


def take(line_in, size):
    """So many bytes; none where there is no room for them, and what comes after is found all the same."""
    try:
        taken = bytearray(size)
    except MemoryError:
        while size:
            passed = len(line_in.read(min(size, 1 << 16)))
            size = size - passed if passed else 0
        return None
    left = memoryview(taken)
    while left:
        read = line_in.readinto(left)
        left = left[read:] if read else None
    return taken


def or_end(work, *args):
    """For a thread that all depends on: a process that is gone is noticed, one that is deaf is waited for."""
    try:
        work(*args)
    except BaseException:
        show_trace()
        end_with_all_children(os.getpid())
        os._exit(1)


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


class FromSource(importlib.machinery.SourceFileLoader):
    """Loads what somebody can read and agreed to, never what was compiled from something else."""

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


def load_from_source(folder):
    """All modules below `folder` are loaded so."""
    kinds = [(importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
             (FromSource, importlib.machinery.SOURCE_SUFFIXES)]
    finder = importlib.machinery.FileFinder.path_hook(*kinds)
    folder = os.path.abspath(folder)

    def hook(path):
        # Where it is named, not where a link leads to: what was agreed to is found the same way.
        if os.path.commonpath([folder, os.path.abspath(path)]) != folder:
            raise ImportError("not ours")
        if ".git" in os.path.relpath(path, folder).split(os.sep):
            return importlib.machinery.FileFinder(path)  # nobody looked there: nothing is found
        return finder(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


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
        path = os.path.join(setup["folder"], "__init__.py")
        spec = importlib.util.spec_from_file_location(
            name, path, loader=FromSource(name, path), submodule_search_locations=[setup["folder"]])
        module = importlib.util.module_from_spec(spec)
        module.__package__, module.__path__ = name, [setup["folder"]]
        sys.modules[name] = module
        spec.loader.exec_module(module)
        module.register(Context(self, manifest))

    def hooks(self):
        return sorted(set(self.callbacks) | ({"pre_tool_call"} if self.middleware else set()))

    def answer(self, question):
        name, errors, returns = question["name"], [], []
        fields, older = kwargs_of(name, question["payload"])
        changed = None
        if name == "pre_tool_call" and self.middleware:
            changed = self.changed_args(fields, older, errors)
            if changed is not None:
                fields["args"] = older["arguments"] = changed
        for callback in self.callbacks.get(name, ()):
            result = self.one(callback, fields, older, errors)
            if name == "pre_llm_call" and isinstance(result, dict) and result.get("context"):
                result = dict(result, context=text(result["context"]))  # as Hermes does
            if result is not None:
                returns.append(result)
        answer = {"returns": returns, "errors": errors}
        if changed is not None:
            answer["args"] = changed
        return answer

    def changed_args(self, fields, older, errors):
        """What `tool_request` middleware makes of the arguments, as in Hermes: all of them see the same, and the
        last word counts; what one changes in place is changed too."""
        original = copy.deepcopy(fields["args"])
        now = copy.deepcopy(original)
        asked = dict(fields, args=now, original_args=original)
        asked.setdefault("middleware_schema_version", "hermes.middleware.v1")
        asked.pop("middleware_trace", None)
        older = dict(older, arguments=now)
        results = [self.one(callback, asked, older, errors) for callback in self.middleware]
        for result in results:
            if isinstance(result, dict) and isinstance(result.get("args"), dict):
                now = result["args"]
        return None if now == fields["args"] else now

    @staticmethod
    def one(callback, fields, older, errors):
        try:
            return called(callback, **fitting(callback, fields, older))
        except BaseException as error:
            show_trace()
            errors.append("%s raised %s" % (getattr(callback, "__name__", "a callback"), said(error)))
            return None


# Hooks that Hermes tells the session in any case, though there may be none.
WITH_SESSION = {
    "on_session_start", "on_session_end", "on_session_finalize", "on_session_reset", "pre_llm_call", "post_llm_call",
    "pre_api_request", "post_api_request", "api_request_error", "pre_tool_call", "post_tool_call", "pre_verify",
    "transform_llm_output", "transform_tool_result",
}


def kwargs_of(name, payload):
    """What Hermes passes to a callback, rebuilt from what it tells a shell hook; and the older names, for those who
    ask for them."""
    fields = dict(payload.get("extra") or {})
    older = {"cwd": payload.get("cwd")}
    session = payload.get("session_id") or ""
    if name.startswith("subagent_"):
        fields["parent_session_id"] = session
    elif session or name in WITH_SESSION:
        fields["session_id"] = session
    else:
        older["session_id"] = session
    if payload.get("tool_name") is not None or name in ("pre_tool_call", "post_tool_call", "transform_tool_result"):
        fields["tool_name"] = payload.get("tool_name") or ""
        fields["args"] = older["arguments"] = payload.get("tool_input") or {}
    if "returncode" in fields:
        older["exit_code"] = fields["returncode"]
    fields.setdefault("telemetry_schema_version", "hermes.observer.v1")
    if name == "post_api_request":
        fields["assistant_message"] = read_back(fields.get("assistant_message"), fields.get("response"))
    if name == "pre_gateway_dispatch":
        for key in ("event", "gateway", "session_store"):
            fields[key] = thing(fields.get(key))
    return fields, older


class NormalizedResponse(types.SimpleNamespace):
    """What a model answered, as Hermes hands it to plugins."""
    provider_data = reasoning = reasoning_content = reasoning_details = None
    anthropic_content_blocks = codex_reasoning_items = codex_message_items = None


class ToolCall(types.SimpleNamespace):
    """A call in it. Older readers look under `function`."""
    provider_data = call_id = response_item_id = extra_content = None
    type = "function"

    @property
    def function(self):
        return self


def read_back(written, response):
    """The model's answer as an object again: over the wire it is what Python prints of it."""
    if not isinstance(written, str):
        return written
    try:
        return built(ast.parse(written, mode="eval").body)
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        message = response.get("assistant_message") if isinstance(response, dict) else None
    if not isinstance(message, dict):
        return written
    try:
        return rebuilt(message)
    except TypeError:
        return written


def rebuilt(message):
    calls = [one for one in message.get("tool_calls") or [] if isinstance(one, dict)]
    calls = [ToolCall(**dict(one, **one.pop("function", None) or {})) for one in calls]
    return NormalizedResponse(content=message.get("content"), tool_calls=calls or None)


def built(node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        kinds = {"NormalizedResponse": NormalizedResponse, "ToolCall": ToolCall}
        kind = kinds.get(node.func.id, types.SimpleNamespace)
        return kind(**{field.arg: built(field.value) for field in node.keywords if field.arg})
    if isinstance(node, (ast.List, ast.Tuple)):
        return [built(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {built(key): built(value) for key, value in zip(node.keys, node.values) if key is not None}
    return ast.literal_eval(node)


def fitting(callback, fields, older):
    """Without what a callback does not name, if it names everything it takes; with what it names of the older."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return fields
    names = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    named = {name: value for name, value in older.items() if name in names and name not in fields}
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        fields = {name: value for name, value in fields.items() if name in names}
    return dict(fields, **named)


class Gateway:
    def __init__(self, setup):
        self.unused = set()
        name = "hermes_hook_%s" % setup["manifest"].get("name", os.path.basename(setup["folder"]))
        path = os.path.join(setup["folder"], "handler.py")
        spec = importlib.util.spec_from_file_location(name, path, loader=FromSource(name, path))
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
            show_trace()
            return {"returns": [], "errors": ["handle raised %s" % said(error)]}


print_without_fail()
logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
main()

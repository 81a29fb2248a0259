"""The plugin host: runs one Hermes plugin directory (`plugin.yaml` + `register(ctx)`) or gateway hook
directory (`HOOK.yaml` + `handler.py`), unmodified, outside of Hermes. One file, standard library only,
Python 3.9 or newer.

Protocol: the bus writes requests to stdin, each a line of JSON and then `size` bytes of payload. The host
answers each on stdout with a line of JSON that has the `id` of the request. The payload is not part of the
line, so that one that does not fit into memory fails alone. The first request sets the host up. A request
with `looks_on` is a notification: it gets no answer.

Order: all callbacks run in the thread that loaded the plugin, in the order of their events, as in Hermes, so
that counters and thread-local state work. One exception: a decision that has waited too long behind
notifications runs in another thread. Working directory and environment belong to the whole process, so while
two requests are handled at once, both have those of the later one.

Output: what the plugin prints goes to stderr; the protocol has file descriptors of its own.

Shutdown: when the bus closes stdin, the host handles what is queued, waits for the threads that the plugin
left running, and runs its exit handlers, all within a few seconds. The watchdog, a small process beside this
one, enforces that whatever the plugin is doing, and kills the host when a notification takes too long.
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
# How long a decision waits for the notifications before it, in seconds. The first callback of all gets
# longer: it may have something to load.
DECISION_WAIT, FIRST_DECISION_WAIT = 1.0, 5.0
# How long a shutdown may take, in seconds.
SHUTDOWN_TIME = 5
# Limits of the queue: notifications, and bytes of payload. A notification beyond them is dropped and
# reported.
MAX_QUEUED, MAX_QUEUED_BYTES = 10_000, 64 << 20
sys.dont_write_bytecode = True  # leave no files of ours in the plugin's directory
if sys.path and not sys.path[0]:
    del sys.path[0]  # the agent's working directory: nothing there may be imported


def main():
    atexit.register(kill_process_group, os.getpid())  # registered first, so that it runs last
    watchdog = Watchdog()
    requests, respond = open_protocol()
    setup = requests.get()
    if setup is None:
        return
    setup["folder"] = os.fsdecode(latin1_bytes(setup["folder"]))
    limit_memory(setup.get("memory"))
    apply_caller(setup)
    load_from_source_only(setup["folder"])
    try:
        host = Gateway(setup) if setup["form"] == "gateway" else Plugin(setup)
        respond(setup, {"hooks": host.hooks(), "unused": sorted(host.unused)})
    except BaseException as error:  # a plugin may even call exit()
        print_traceback()
        respond(setup, {"error": describe(error)})
        return
    dispatcher = Dispatcher(host, respond, watchdog)
    threading.Thread(target=run_or_exit, args=(dispatcher.accept, requests), daemon=True).start()
    dispatcher.run()


class Dispatcher:
    """The queue of requests. They are handled in the order in which they arrive."""

    def __init__(self, host, respond, watchdog):
        self.host, self.respond, self.watchdog = host, respond, watchdog
        self.contexts = TurnContexts()
        self.host_pid = os.getpid()
        self.changed = threading.Condition()
        self.queue, self.queued_bytes = collections.deque(), 0
        self.started, self.is_busy, self.dropped = 0, False, 0
        # The number of the request that a decision has overtaken. No other decision waits for it.
        self.overtaken = None

    def run(self):
        """Handles requests in the plugin's own thread, until the bus closes the connection."""
        while True:
            with self.changed:
                self.is_busy = False
                self.changed.wait_for(lambda: self.queue)
                request = self.queue.popleft()
                self.queued_bytes -= size_of(request)
                self.started, self.is_busy = self.started + 1, True
                self.changed.notify_all()
            if request is None:
                return
            if request.get("looks_on"):
                self.watchdog.start_timeout(request)
            self.handle(request)
            self.watchdog.clear_timeout()

    def accept(self, requests):
        """Puts arriving requests into the queue, in a thread of its own."""
        env = CURRENT_ENV[0]
        while True:
            request = requests.get()
            if request is not None:
                # The bus sends the environment only when it changes. It is filled in here, because requests
                # are not always handled in this order.
                env = request["env"] = request.get("env") or env
            is_notification = request is not None and request.get("looks_on")
            if is_notification and (len(self.queue) >= MAX_QUEUED or self.queued_bytes >= MAX_QUEUED_BYTES):
                print("hookbus: the queue is full; %s was dropped" % request.get("name"), file=sys.stderr)
                self.dropped += 1
                continue
            self.put(request)
            if request is None:
                return
            if not is_notification and self.overtakes(request):
                self.handle(request, out_of_order=True)

    def put(self, request):
        with self.changed:
            self.queue.append(request)
            self.queued_bytes += size_of(request)
            self.changed.notify_all()

    def overtakes(self, request):
        """Waits for the plugin's thread to take a decision. If that takes too long, removes it from the
        queue and returns True. A slow notification is waited for once, not by every decision behind it."""
        with self.changed:
            wait = min(FIRST_DECISION_WAIT if self.started <= 1 else DECISION_WAIT,
                       request.get("limit", DECISION_WAIT) / 2)
            if self.is_busy and self.overtaken == self.started:
                wait = 0
            # The decision is the last one in the queue: the bus waits for its answer before it sends more.
            if self.changed.wait_for(lambda: not (self.queue and self.queue[-1] is request), wait):
                return False
            self.overtaken = self.started
            self.queue.pop()
            self.queued_bytes -= size_of(request)
            return True

    def behind(self, out_of_order):
        """How many earlier events the plugin has not handled yet, or never will because they were dropped."""
        with self.changed:
            return self.dropped + (len(self.queue) + self.is_busy if out_of_order else 0)

    def handle(self, request, out_of_order=False):
        behind = self.behind(out_of_order)
        try:
            apply_caller(request)
            request["payload"] = parse_payload(request)
            context = self.contexts.context_for(request)
            # A context can be used by one thread at a time.
            answer = (context.copy() if out_of_order else context).run(self.host.answer, request)
        except BaseException as error:  # a malformed event fails alone; the plugin goes on
            print_traceback()
            answer = {"returns": [], "errors": ["it could not be called: %s" % describe(error)]}
        if os.getpid() != self.host_pid:
            os._exit(0)  # a child process that a callback forked must not continue here
        if request.get("looks_on"):
            for error in answer["errors"]:
                print("hookbus: at %s: %s" % (request.get("name"), error), file=sys.stderr)
        else:
            self.respond(request, dict(answer, behind=behind))


def size_of(request):
    return request["size"] if request else 0


def parse_payload(request):
    """Parses the payload when it is needed: the objects take more memory than the bytes in the queue."""
    payload = request.pop("payload")
    try:
        if payload is None:
            raise MemoryError
        payload = str(payload, "utf-8")
        return json.loads(payload)
    except MemoryError:
        mebibytes = request["size"] / (1 << 20)
        why = "a payload of %.0f MiB does not fit into its memory; raise `memory`" % mebibytes
        raise MemoryError(why) from None


class TurnContexts:
    """A `contextvars` context for each turn, as in Hermes, where a turn has a thread or a copy of its own:
    what a callback sets in one turn is not visible in the next."""

    MAX_SESSIONS = 1000

    def __init__(self):
        self.lock = threading.Lock()
        self.initial = contextvars.copy_context()
        self.sessions = collections.OrderedDict()

    def context_for(self, request):
        session = request.get("session") or ""
        turn = (request["payload"].get("extra") or {}).get("turn_id")
        with self.lock:
            last_turn, context = self.sessions.pop(session, (None, None))
            if context is None or (turn and last_turn and turn != last_turn):
                context = self.initial.copy()
            self.sessions[session] = (turn or last_turn, context)
            while len(self.sessions) > self.MAX_SESSIONS:
                self.sessions.popitem(last=False)
        return context


class Watchdog:
    """A process beside this one, in the same process group, that no plugin can hold up. It kills the group
    when the host has ended, when a shutdown takes too long, and when a notification exceeds its timeout."""

    POLL_SECONDS = 1.0
    # When the notification under way has to be finished (0: there is none), and the name of its event.
    TIMEOUT = struct.Struct("d100s")

    def __init__(self):
        self.timeout = mmap.mmap(-1, self.TIMEOUT.size)  # shared memory: no system call per notification
        host_pid = os.getpid()
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write_end)
            # A grandchild, not a child: a plugin that waits for all of its children must not wait for this
            # one.
            if os.fork() == 0:
                self.guard(host_pid, read_end)
            os._exit(0)
        os.close(read_end)
        os.waitpid(child, 0)
        # The pipe closes when the host ends; forked children must not hold it open.
        os.register_at_fork(after_in_child=lambda: os.close(write_end))

    def start_timeout(self, request):
        if request.get("timeout"):
            name = str(request.get("name")).encode("ascii", "replace")
            self.TIMEOUT.pack_into(self.timeout, 0, time.monotonic() + request["timeout"], name)

    def clear_timeout(self):
        struct.pack_into("d", self.timeout, 0, 0)

    def guard(self, host_pid, read_end):
        poll, shutdown_ends = select.poll(), None
        poll.register(read_end, 0)
        poll.register(0, 0)
        while True:
            deadline, name = self.TIMEOUT.unpack_from(self.timeout, 0)
            now = time.monotonic()
            if deadline and now >= deadline:
                self.report_timeout(name.rstrip(b"\0").decode())
                break
            if shutdown_ends and now >= shutdown_ends:
                break
            closed = [descriptor for descriptor, _ in poll.poll(self.POLL_SECONDS * 1000)]
            if read_end in closed:
                break
            if 0 in closed:
                poll.unregister(0)
                shutdown_ends = now + SHUTDOWN_TIME + 1
        os.killpg(host_pid, signal.SIGKILL)

    @staticmethod
    def report_timeout(name):
        why = "%s took longer than the hook's timeout; the plugin was ended, and its queue is lost" % name
        for descriptor, line in ((1, json.dumps({"over": why})), (2, "hookbus: %s" % why)):
            try:
                os.write(descriptor, (line + "\n").encode())
            except OSError:
                pass  # the bus has closed the connection, or the disk is full


def kill_process_group(host_pid):
    """Kills everything that the plugin started, and the host itself. Does nothing in a forked child."""
    if os.getpid() == host_pid and os.getpgrp() == host_pid:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # a plugin may have replaced the streams by anything
            os.killpg(host_pid, signal.SIGKILL)


class LogStream(io.FileIO):
    """Where the plugin prints to. A write never fails, not even if hookbus has ended: a plugin must not break
    because of its prints."""

    def write(self, data):
        data = bytes(data)
        size, left = len(data), memoryview(data)
        try:
            while left:
                left = left[super().write(left):]
        except OSError:
            pass
        return size


def replace_output_streams():
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = LogStream(descriptor, "w", closefd=False)
        # Text that cannot be encoded is escaped, so that the print does not fail.
        stream = io.TextIOWrapper(raw, sys.stderr.encoding, "backslashreplace", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)


def print_traceback():
    try:
        traceback.print_exc()
    except Exception:  # there may be no memory left for it
        pass


def open_protocol():
    """Moves the protocol to new file descriptors, where a plugin's prints cannot get into it. Returns a
    queue of requests and a function that answers one."""
    requests_in, answers_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    host_pid = os.getpid()
    # A child that a callback forks must not write answers.
    os.register_at_fork(after_in_child=answers_out.close)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    requests = queue.Queue()

    def read_requests():
        for line in requests_in:
            request = json.loads(line)
            request["payload"] = read_payload(requests_in, request["size"])
            requests.put(request)
        requests.put(None)
        threading.Event().wait(SHUTDOWN_TIME)
        kill_process_group(host_pid)
        os._exit(0)

    threading.Thread(target=run_or_exit, args=(read_requests,), daemon=True).start()

    def respond(request, value):
        if os.getpid() != host_pid:
            os._exit(0)
        line = memoryview(encode_answer(dict(value, id=request.get("id"))) + b"\n")
        try:
            while line:
                line = line[answers_out.write(line):]
        except BrokenPipeError:
            pass  # the bus has closed the connection

    return requests, respond


def read_payload(requests_in, size):
    """Reads `size` bytes. Returns None where memory does not suffice, with the bytes skipped, so that the
    next request is found."""
    try:
        payload = bytearray(size)
    except MemoryError:
        while size:
            skipped = len(requests_in.read(min(size, 1 << 16)))
            size = size - skipped if skipped else 0
        return None
    left = memoryview(payload)
    while left:
        count = requests_in.readinto(left)
        left = left[count:] if count else None
    return payload


def run_or_exit(work, *args):
    """Runs a thread that the host cannot do without. If it fails, the host ends: the bus notices a process
    that has ended at once, but would wait for one that does not read any more."""
    try:
        work(*args)
    except BaseException:
        print_traceback()
        kill_process_group(os.getpid())
        os._exit(1)


def encode_answer(value):
    for encode in (lambda: json.dumps(value, default=str), lambda: json.dumps(json_safe(value, 0))):
        try:
            return encode().encode()
        except Exception as error:
            why = describe(error)
    errors = ["its return value cannot be encoded as JSON: %s" % why]
    return json.dumps({"id": value.get("id"), "returns": [], "errors": errors}).encode()


def json_safe(value, depth):
    """A copy with text in place of what JSON cannot represent: a block with an odd value in it is still a
    block."""
    if isinstance(value, int) and value.bit_length() > 10_000:
        return hex(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth < 12 and isinstance(value, dict):
        return {to_text(key): json_safe(item, depth + 1) for key, item in value.items()}
    if depth < 12 and isinstance(value, (list, tuple)):
        return [json_safe(item, depth + 1) for item in value]
    return to_text(value)


def to_text(value):
    try:
        return str(value)
    except Exception:
        return "<%s>" % type(value).__name__


def limit_memory(limit):
    if limit:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


# The environment in force, in a list so that functions can replace it. One character stands for one byte.
CURRENT_ENV = [{name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}]


def apply_caller(request):
    """Switches to the working directory and the environment of the agent that the request comes from."""
    env = request.get("env") or CURRENT_ENV[0]
    if env is not CURRENT_ENV[0]:
        CURRENT_ENV[0] = env
        os.environ.clear()
        os.environb.update({latin1_bytes(name): latin1_bytes(value) for name, value in env.items()})
    try:
        os.chdir(latin1_bytes(request.get("cwd") or "/"))
    except OSError:
        os.chdir("/")


def latin1_bytes(text):
    """Paths and variables need not be UTF-8: in a request each character stands for one byte."""
    return text.encode("latin-1")


def describe(error):
    return "%s: %s" % (type(error).__name__, error)


def call_and_await(callback, *args, **kwargs):
    """Calls a callback. If it returns a coroutine, awaits that, which Hermes itself does not do."""
    result = callback(*args, **kwargs)
    if not inspect.isawaitable(result):
        return result
    value, error = asyncio.run_coroutine_threadsafe(outcome_of(result), shared_loop()).result()
    if error is not None:
        raise error
    return value


async def outcome_of(result):
    try:
        return await result, None
    except BaseException as error:  # an exit() would end the loop for all
        return None, error


LOOP = []
LOOP_LOCK = threading.Lock()


def shared_loop():
    """One event loop for all calls: a task that a callback leaves behind continues after the call."""
    with LOOP_LOCK:
        if not LOOP:
            LOOP.append(asyncio.new_event_loop())
            threading.Thread(target=LOOP[0].run_forever, daemon=True).start()
        return LOOP[0]


class FieldObject(types.SimpleNamespace):
    """Stands in for an object of Hermes: fields as attributes, None for those that are missing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def get(self, name, default=None):
        return self.__dict__.get(name, default)


class EnumText(str):
    """Stands in for an enum member of Hermes: a text that also has a `value`."""

    @property
    def value(self):
        return str(self)


def to_object(value, name=""):
    if isinstance(value, dict) and name == "metadata":
        return value
    if isinstance(value, dict):
        return FieldObject(**{str(key): to_object(item, key) for key, item in value.items()})
    if isinstance(value, list):
        return [to_object(item) for item in value]
    return EnumText(value) if isinstance(value, str) and name in ("platform", "message_type") else value


class PluginManifest(types.SimpleNamespace):
    """`plugin.yaml`, and the fields that Hermes adds."""


class PluginContext:
    """What `register(ctx)` gets. Hooks and middleware are used; other registrations are accepted and
    reported."""

    def __init__(self, host, manifest):
        self._host = host
        self.manifest = manifest
        self.profile_name = os.environ.get("HERMES_PROFILE") or "default"
        self.llm = FieldObject()

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
        return json.dumps({"error": "hookbus runs only the hooks of this plugin; there is no tool %s" % name})

    def __getattr__(self, name):
        if not name.startswith("register_"):
            raise AttributeError(name)

        def ignored(*args, **kwargs):
            self._host.unused.add(name)

        return ignored


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles a module from its source each time: the user approved the source, and a cached .pyc file may
    have been compiled from another one."""

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


def load_from_source_only(folder):
    """Makes imports below `folder` use `SourceLoader`."""
    loaders = [(importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
               (SourceLoader, importlib.machinery.SOURCE_SUFFIXES)]
    finder = importlib.machinery.FileFinder.path_hook(*loaders)
    folder = os.path.abspath(folder)

    def path_hook(path):
        # The path as it is written, with symlinks unresolved, as in the approval.
        if os.path.commonpath([folder, os.path.abspath(path)]) != folder:
            raise ImportError("not below the plugin's directory")
        if ".git" in os.path.relpath(path, folder).split(os.sep):
            # Approvals do not cover it. A finder without loaders finds nothing there.
            return importlib.machinery.FileFinder(path)
        return finder(path)

    sys.path_hooks.insert(0, path_hook)
    sys.path_importer_cache.clear()


class Plugin:
    """A plugin directory, loaded under the module name that it has in Hermes."""

    def __init__(self, setup):
        self.callbacks, self.middleware, self.unused = {}, [], set()
        manifest = PluginManifest(**setup["manifest"])
        key = setup["key"]
        manifest.key, manifest.path, manifest.source = key, setup["folder"], "user"
        package = types.ModuleType(NAMESPACE)
        package.__path__ = []
        sys.modules[NAMESPACE] = package
        name = "%s.%s" % (NAMESPACE, key.replace("/", "__").replace("-", "_"))
        path = os.path.join(setup["folder"], "__init__.py")
        spec = importlib.util.spec_from_file_location(
            name, path, loader=SourceLoader(name, path), submodule_search_locations=[setup["folder"]])
        module = importlib.util.module_from_spec(spec)
        module.__package__, module.__path__ = name, [setup["folder"]]
        sys.modules[name] = module
        spec.loader.exec_module(module)
        module.register(PluginContext(self, manifest))

    def hooks(self):
        return sorted(set(self.callbacks) | ({"pre_tool_call"} if self.middleware else set()))

    def answer(self, request):
        name, errors, returns = request["name"], [], []
        fields, legacy = callback_arguments(name, request["payload"])
        changed = None
        if name == "pre_tool_call" and self.middleware:
            changed = self.run_middleware(fields, legacy, errors)
            if changed is not None:
                fields["args"] = legacy["arguments"] = changed
        for callback in self.callbacks.get(name, ()):
            result = self.call(callback, fields, legacy, errors)
            if name == "pre_llm_call" and isinstance(result, dict) and result.get("context"):
                result = dict(result, context=to_text(result["context"]))  # as Hermes does
            if result is not None:
                returns.append(result)
        answer = {"returns": returns, "errors": errors}
        if changed is not None:
            answer["args"] = changed
        return answer

    def run_middleware(self, fields, legacy, errors):
        """The tool's arguments after all `tool_request` middleware; None if they are unchanged. As in
        Hermes: all of them get the same arguments, may change them in place, and the last ones that are
        returned count."""
        original = copy.deepcopy(fields["args"])
        current = copy.deepcopy(original)
        given = dict(fields, args=current, original_args=original)
        given.setdefault("middleware_schema_version", "hermes.middleware.v1")
        given.pop("middleware_trace", None)
        legacy = dict(legacy, arguments=current)
        results = [self.call(callback, given, legacy, errors) for callback in self.middleware]
        for result in results:
            if isinstance(result, dict) and isinstance(result.get("args"), dict):
                current = result["args"]
        return None if current == fields["args"] else current

    @staticmethod
    def call(callback, fields, legacy, errors):
        try:
            return call_and_await(callback, **accepted_arguments(callback, fields, legacy))
        except BaseException as error:
            print_traceback()
            errors.append("%s raised %s" % (getattr(callback, "__name__", "a callback"), describe(error)))
            return None


# Hooks that Hermes always passes a session to, even an empty one.
HOOKS_WITH_SESSION = {
    "on_session_start", "on_session_end", "on_session_finalize", "on_session_reset", "pre_llm_call",
    "post_llm_call", "pre_api_request", "post_api_request", "api_request_error", "pre_tool_call",
    "post_tool_call", "pre_verify", "transform_llm_output", "transform_tool_result",
}


def callback_arguments(name, payload):
    """The keyword arguments that Hermes passes to a callback, rebuilt from the payload that it sends to a
    shell hook; and those under names of older versions, for callbacks that ask for them."""
    fields = dict(payload.get("extra") or {})
    legacy = {"cwd": payload.get("cwd")}
    session = payload.get("session_id") or ""
    if name.startswith("subagent_"):
        fields["parent_session_id"] = session
    elif session or name in HOOKS_WITH_SESSION:
        fields["session_id"] = session
    else:
        legacy["session_id"] = session
    is_about_tool = name in ("pre_tool_call", "post_tool_call", "transform_tool_result")
    if payload.get("tool_name") is not None or is_about_tool:
        fields["tool_name"] = payload.get("tool_name") or ""
        fields["args"] = legacy["arguments"] = payload.get("tool_input") or {}
    if "returncode" in fields:
        legacy["exit_code"] = fields["returncode"]
    fields.setdefault("telemetry_schema_version", "hermes.observer.v1")
    if name == "post_api_request":
        fields["assistant_message"] = parse_response(fields.get("assistant_message"), fields.get("response"))
    if name == "pre_gateway_dispatch":
        for key in ("event", "gateway", "session_store"):
            fields[key] = to_object(fields.get(key))
    return fields, legacy


class NormalizedResponse(types.SimpleNamespace):
    """The model's answer, as Hermes passes it to plugins."""
    provider_data = reasoning = reasoning_content = reasoning_details = None
    anthropic_content_blocks = codex_reasoning_items = codex_message_items = None


class ToolCall(types.SimpleNamespace):
    """A tool call in a `NormalizedResponse`. Older plugins read its fields from `function`."""
    provider_data = call_id = response_item_id = extra_content = None
    type = "function"

    @property
    def function(self):
        return self


def parse_response(written, response):
    """The model's answer as an object. The payload holds its Python `repr`; where that cannot be parsed, it
    is built from `response`, and if that fails too, it stays a text."""
    if not isinstance(written, str):
        return written
    try:
        return from_syntax_tree(ast.parse(written, mode="eval").body)
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        message = response.get("assistant_message") if isinstance(response, dict) else None
    if not isinstance(message, dict):
        return written
    try:
        return from_message(message)
    except TypeError:
        return written


def from_message(message):
    calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    calls = [ToolCall(**dict(call, **call.pop("function", None) or {})) for call in calls]
    return NormalizedResponse(content=message.get("content"), tool_calls=calls or None)


def from_syntax_tree(node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        classes = {"NormalizedResponse": NormalizedResponse, "ToolCall": ToolCall}
        cls = classes.get(node.func.id, types.SimpleNamespace)
        return cls(**{field.arg: from_syntax_tree(field.value) for field in node.keywords if field.arg})
    if isinstance(node, (ast.List, ast.Tuple)):
        return [from_syntax_tree(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {from_syntax_tree(key): from_syntax_tree(value)
                for key, value in zip(node.keys, node.values) if key is not None}
    return ast.literal_eval(node)


def accepted_arguments(callback, fields, legacy):
    """The arguments that a callback accepts: all of `fields`, or those that it names if it has no
    `**kwargs`, and those of `legacy` that it names."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return fields
    names = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    named = {name: value for name, value in legacy.items() if name in names and name not in fields}
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        fields = {name: value for name, value in fields.items() if name in names}
    return dict(fields, **named)


class Gateway:
    """A gateway hook directory, loaded under the module name that it has in Hermes."""

    def __init__(self, setup):
        self.unused = set()
        name = "hermes_hook_%s" % setup["manifest"].get("name", os.path.basename(setup["folder"]))
        path = os.path.join(setup["folder"], "handler.py")
        spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, path))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        self.handle = module.handle
        self.events = [str(event) for event in setup["manifest"].get("events") or []]

    def hooks(self):
        return self.events

    def answer(self, request):
        payload = request["payload"]
        context = dict(payload.get("extra") or {})
        if payload.get("session_id"):
            context["session_id"] = payload["session_id"]
        try:
            result = call_and_await(self.handle, request["name"], context)
            return {"returns": [] if result is None else [result], "errors": []}
        except BaseException as error:
            print_traceback()
            return {"returns": [], "errors": ["handle raised %s" % describe(error)]}


replace_output_streams()
logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
main()

"""A process inside the sandbox that has already imported pytest. Each fork of it becomes a test run, which saves the
start.

The target's interpreter runs it as `python -c`, so it needs only the standard library of Python 3.8 and the
environment's pytest. The argument is JSON; see `build_settings` in `zygote.py`. The process imports pytest and the
installed plugins. It sees the names of the project's files but cannot read them, so nothing that a patch changes can
take part.

On the control socket, the process reports that it is ready, or why it cannot be. It then receives names of runs, each
with two descriptors: one for the output, and a socket for the run itself. Each run is a process in namespaces of its
own (processes, mounts, network, messages), with a new workspace, temporary folders and home. It has given up all its
rights when its program begins. The run's socket carries, in order: `ready`, with the folder of its results; the signal
to start; and how the program ended. If the preparation fails, the socket is closed after a line that says why.
"""

from __future__ import annotations

import array
import base64
import contextlib
import ctypes
import fcntl
import gc
import json
import os
import signal
import socket
import struct
import sys
import time
from importlib import import_module, invalidate_caches, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

NEW_PROCESSES, NEW_MOUNTS, NEW_NETWORK, NEW_MESSAGES = 0x20000000, 0x00020000, 0x40000000, 0x08000000
NO_SETUID, NO_DEVICES, NO_PROGRAMS, BIND, ALL_BELOW, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
DUMPABLE, BOUNDING_DROP, SECCOMP, FILTER, AMBIENT, AMBIENT_CLEAR = 4, 24, 22, 2, 47, 4
CAPABILITIES_VERSION = 0x20080522
LAST_CAPABILITY = 63
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
COMMAND_NOT_FOUND = 127
LARGEST_MESSAGE = 4096

libc = ctypes.CDLL(None, use_errno=True)


class NoWarmStart(Exception):
    """A warm start is not possible here; the message says why."""


def main() -> None:
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=settings["control"])
    os.set_inheritable(control.fileno(), False)
    prctl(AMBIENT, AMBIENT_CLEAR)
    # A namespace of processes that is this user's own can be returned to after each fork into another one.
    check_result(libc.unshare(NEW_PROCESSES), "unshare")
    child = os.fork()
    if child:
        control.close()
        os.waitpid(child, 0)
        os._exit(0)
    own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    prctl(DUMPABLE, 0)
    rights = get_permitted_rights()
    set_capabilities(0, rights)
    try:
        preload()
    except BaseException as error:  # whatever a plugin raises
        control.send(f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:LARGEST_MESSAGE])
        os._exit(1)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # what all runs share need not be looked through, and copied by that, in each of them
    set_capabilities(rights, rights)
    signal.signal(signal.SIGCHLD, reap)
    control.send(b"ready")
    serve(settings, control, own_namespace)


def preload() -> None:
    """Import what pytest would import before it looks at the project, in the same way."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    import_module("pytest")
    configuration = import_module("_pytest.config")
    config = configuration.get_config()
    if not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        hook = import_module("_pytest.assertion").install_importhook(config)
        entries = [
            (distribution, entry) for distribution in metadata.distributions() for entry in distribution.entry_points
        ]
        plugins = [(distribution, entry) for distribution, entry in entries if entry.group == "pytest11"]
        files = [
            str(file)
            for distribution in {id(distribution): distribution for distribution, _ in plugins}.values()
            for file in distribution.files or ()
        ]
        hook.mark_rewrite(*configuration._iter_rewritable_modules(files))
        for _, entry in plugins:
            import_module(entry.value.partition(":")[0].strip())
        sys.meta_path.remove(hook)
    config._ensure_unconfigure()
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise NoWarmStart("a plugin has started a thread")


def serve(settings: dict[str, Any], control: socket.socket, own_namespace: int) -> None:
    while True:
        name, descriptors = receive(control)
        if not name:
            os._exit(0)
        output, run_socket = descriptors
        check_result(libc.unshare(NEW_PROCESSES), "unshare")
        child = os.fork()
        if child == 0:
            control.close()
            os.close(own_namespace)
            os.close(0)
            os.open(os.devnull, os.O_RDWR)
            prepare(settings, name.decode(), output, socket.socket(fileno=run_socket))
            return
        os.close(output)
        os.close(run_socket)
        check_result(libc.setns(own_namespace, NEW_PROCESSES), "setns")


def prepare(settings: dict[str, Any], name: str, output: int, run_socket: socket.socket) -> None:
    """Be the first process of a run: prepare its surroundings, wait for the program to end, and report how it ended.

    It returns only in the process that becomes the program.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    try:
        run = Path(settings["runs"], name)
        request = json.loads((run / "request.json").read_text(encoding="utf-8"))
        outward = furnish(settings, run)
        give_up_rights(base64.b64decode(settings["filter"]))
    except BaseException as error:
        run_socket.send(f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:LARGEST_MESSAGE])
        os._exit(1)
    run_socket.sendmsg([b"ready"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [outward]))])
    os.close(outward)
    if run_socket.recv(LARGEST_MESSAGE) != b"go":
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that Python has a handler for
    child = os.fork()
    if child == 0:
        run_socket.close()
        prctl(DUMPABLE, 1)
        become_pytest(request, output)
        return
    os.close(output)
    ended_pid, status, used = os.wait4(-1, 0)
    while ended_pid != child:  # somebody's orphan
        ended_pid, status, used = os.wait4(-1, 0)
    report = {"status": status, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024}
    run_socket.send(json.dumps(report).encode())
    os._exit(0)


def furnish(settings: dict[str, Any], run: Path) -> int:
    """Create the run's own mounts and network, and return the open folder for its results."""
    check_result(libc.unshare(NEW_MOUNTS | NEW_NETWORK | NEW_MESSAGES), "unshare")
    stage, temporary = settings["stage"], settings["temporary"]
    existing = [path for path in settings["within"] if Path(path).exists()]
    descriptors = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in existing}
    mount("none", "/", "", ALL_BELOW | PRIVATE)
    bounds = f"size={settings['size']},nr_inodes={settings['inodes']},mode=0755"
    mount("redstart", stage, "tmpfs", NO_SETUID | NO_DEVICES, bounds)
    for folder in ("upper", "work", "workspace", "out", "run", *temporary.values()):
        Path(stage, folder).mkdir(0o755)
    layers = f"lowerdir={run}/work,upperdir={stage}/upper,workdir={stage}/work,userxattr"
    mount("redstart", f"{stage}/workspace", "overlay", NO_SETUID | NO_DEVICES, layers)
    sources = {"/run": f"{stage}/run", settings["mount"]: f"{stage}/workspace"}
    sources.update({settings["inward"]: f"{run}/in", settings["outward"]: f"{stage}/out"})
    sources.update({path: f"{stage}/{folder}" for path, folder in temporary.items()})
    descriptors.update({path: os.open(source, os.O_PATH | os.O_CLOEXEC) for path, source in sources.items()})
    # A folder comes before what lies in it, or it would hide that.
    for path in sorted(descriptors, key=lambda item: item.count("/")):
        place(Path(path), Path(f"/proc/self/fd/{descriptors[path]}"))
    for path in temporary:
        Path(path).chmod(0o700 if path == settings["home"] else 0o1777)
    mount("proc", "/proc", "proc", NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))
    for descriptor in descriptors.values():
        os.close(descriptor)
    return os.open(settings["outward"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def place(path: Path, source: Path) -> None:
    """Make `source` visible at `path` too, and create `path` if it does not exist."""
    if source.is_dir():
        path.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    mount(str(source), str(path), "", BIND | ALL_BELOW)


def give_up_rights(call_filter: bytes) -> None:
    for number in range(LAST_CAPABILITY + 1):
        libc.prctl(BOUNDING_DROP, number, 0, 0, 0)
    set_capabilities(0, 0)
    code = ctypes.create_string_buffer(call_filter, len(call_filter))
    program = struct.pack("HxxxxxxP", len(call_filter) // 8, ctypes.addressof(code))
    check_result(libc.prctl(SECCOMP, FILTER, ctypes.c_char_p(program), 0, 0), "seccomp")


def become_pytest(request: dict[str, Any], output: int) -> None:
    """Bring this process into the state of `python -m pytest ...` just before pytest begins."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if output > 2:
        os.close(output)
    os.environ.clear()
    os.environ.update(request["variables"], PWD=request["folder"], OLDPWD="/")  # as a shell would leave it
    time.tzset()
    try:
        os.chdir(request["folder"])
    except OSError as error:
        os.write(2, f"cd: {error}\n".encode())
        os._exit(COMMAND_NOT_FOUND)
    sys.argv[:] = ["-m", *request["argv"][3:]]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = request["argv"]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(Path.cwd()))


def receive(control: socket.socket) -> tuple[bytes, array.array[int]]:
    """Receive a message and its descriptors; the message is empty at the end of the connection."""
    size = array.array("i").itemsize
    message, ancillary, _, _ = control.recvmsg(LARGEST_MESSAGE, socket.CMSG_SPACE(2 * size))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % size])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return message, descriptors


def reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = (
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    check_result(libc.mount(*arguments), f"mount {target}")


def prctl(*arguments: int) -> None:
    check_result(libc.prctl(*arguments, *(0,) * (5 - len(arguments))), "prctl")


def get_permitted_rights() -> int:
    """Return the capabilities that this process may use, as bits."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:"))


def set_capabilities(effective: int, permitted_bits: int) -> None:
    header = struct.pack("Ii", CAPABILITIES_VERSION, 0)
    halves = [(effective >> shift & 0xFFFFFFFF, permitted_bits >> shift & 0xFFFFFFFF, 0) for shift in (0, 32)]
    check_result(libc.capset(header, b"".join(struct.pack("III", *half) for half in halves)), "capset")


def check_result(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), action)


if __name__ == "__main__":
    main()
    # Only the process that has become a run comes here. It begins with a main module of its own, as a fresh one would.
    sys.modules["__main__"] = ModuleType("__main__")
    if sys.version_info < (3, 14):
        sys.modules["__main__"].__annotations__ = {}
    invalidate_caches()
    import_module("runpy")._run_module_as_main("pytest")

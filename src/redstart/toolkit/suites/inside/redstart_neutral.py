"""Lays out surroundings in which nothing looks like a test run, and starts a plain driver of tests in them.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later:

    python start.py IN OUT

`IN` holds `plan.json` and the driver's files; the results are left as `state.json` in `OUT`. What of the surroundings
is other than in a test run stands in the plan's `applied`.
"""

# ruff: noqa: PTH110, PTH118

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN, STATE = "plan.json", "state.json"
LARGEST_TREE = 300 << 20
END_OF_INPUT = b"\x04"
"""What a terminal sends for an end of input: each read of it ends at once."""


class Place:
    """The folders of one run."""

    def __init__(self, base):
        self.base = Path(base)
        self.code, self.home = self.base / "bin", self.base / "home"
        self.empty, self.project, self.apart = self.base / "var", self.base / "app", self.base / "lib"
        for folder in (self.code, self.home, self.empty, self.apart):
            folder.mkdir()


def size_of(root, kept):
    """Bytes of the files below it, but for the folders that stay where they are."""
    total = 0
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if os.path.join(folder, name) not in kept]
        for name in files:
            total += os.lstat(os.path.join(folder, name)).st_size
    return total


def copy_project(plan, place):
    """Where the project lies for the driver: a copy, or the mount itself where that is wanted or it is too large."""
    mount, kept = plan["mount"], set(plan["kept"])
    if "path" not in plan["applied"] or size_of(mount, kept) > LARGEST_TREE:
        return mount

    def left(folder, names):
        return [name for name in names if os.path.join(folder, name) in kept]

    shutil.copytree(mount, str(place.project), symlinks=True, ignore=left)
    for path in kept:
        link = place.project / os.path.relpath(path, mount)
        if link.parent.is_dir() and os.path.exists(path):
            link.symlink_to(path)
    return str(place.project)


def set_apart(plan, place):
    """Moves the tests out of the copy of the project, as they are not where it is installed."""
    root = Path(plan["project"], plan["folder"])
    if "layout" in plan["applied"] and str(root).startswith(str(place.base)):
        for path in list(root.iterdir()):
            name = path.name
            if name in ("test", "tests", "conftest.py") or name.startswith("test_") or name.endswith("_test.py"):
                path.rename(place.apart / name)


def moved(text, plan, project):
    """A variable's value with the mount's path replaced by the copy's."""
    return text.replace(plan["mount"], project)


def variables_of(plan, place, project):
    """The whole environment of the driver."""
    if "environment" not in plan["applied"]:
        return dict(os.environ)
    own = {name: moved(value, plan, project) for name, value in plan["own_variables"].items()}
    search = os.pathsep.join(entry for entry in own.pop("PYTHONPATH", "").split(os.pathsep) if entry)
    if "folder" in plan["applied"]:
        # Without it no child process would find the project from an empty folder.
        roots = [os.path.join(project, plan["folder"]), *([search] if search else [])]
        search = os.pathsep.join(os.path.normpath(root) for root in roots)
    kept = {name: os.environ[name] for name in ("PATH", "TZ", "LANG") if name in os.environ}
    made = {**plan["variables"]}
    if "HOME" in made:
        made["HOME"] = str(place.home)
    elif "HOME" in os.environ:
        made["HOME"] = os.environ["HOME"]
    return {**kept, **made, **own, **({"PYTHONPATH": search} if search else {})}


def start_driver(plan, place, variables, terminal):
    """Starts it; gives the process and, with a terminal, the end that its output is read from."""
    serve = str(place.code / "serve.py")
    argv = [sys.executable, serve, *(("--port", "8080") if "arguments" in plan["applied"] else plan["arguments"])]
    if not terminal:
        return subprocess.Popen(argv, env=variables, cwd=str(place.base), stdin=subprocess.DEVNULL), None
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        argv, env=variables, cwd=str(place.base), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, END_OF_INPUT * 64)
    return process, ours


def forward(process, ours, deadline):
    """Passes the driver's output on until it ends; says whether it ended in time."""
    while time.monotonic() < deadline:
        ready = select.select([ours], [], [], 0.05)[0] if ours is not None else []
        if ready:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # the terminal's other end is closed
                chunk = b""
            if chunk:
                sys.stdout.buffer.write(chunk)
                continue
            ours = None
        try:
            process.wait(timeout=0 if ours is not None else max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            continue
        return True
    return False


def terminal_works():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


def main():
    inward, outward = Path(sys.argv[1]), Path(sys.argv[2])
    plan = json.loads((inward / PLAN).read_text(encoding="utf-8"))
    place = Place(os.path.realpath(tempfile.mkdtemp(prefix="srv-")))
    plan["project"] = copy_project(plan, place)
    plan["empty"], plan["apart"] = str(place.empty), str(place.apart)
    set_apart(plan, place)
    for name in plan["files"]:
        shutil.copyfile(str(inward / name), str(place.code / name))
    (place.code / PLAN).write_text(json.dumps(plan), encoding="utf-8")
    variables = variables_of(plan, place, plan["project"])
    terminal = "streams" in plan["applied"] and terminal_works()
    process, ours = start_driver(plan, place, variables, terminal)
    ended = forward(process, ours, time.monotonic() + plan["seconds"])
    if not ended:
        process.send_signal(signal.SIGKILL)
        process.wait()
    state = place.code / STATE
    results = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    (outward / STATE).write_text(json.dumps({"results": results, "late": not ended}), encoding="utf-8")
    shutil.rmtree(str(place.base), ignore_errors=True)


if __name__ == "__main__":
    main()

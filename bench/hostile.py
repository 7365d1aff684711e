"""Whether an answer can write to forbidden places.

Each hostile answer goes through the whole loop on a folder of its own: parsing, the ladder, policy, snapshots and the
checks are the real ones. Only the test run is simulated, and it is credulous: any change passes. A verified result is
written to the working tree as `redstart apply` does. Then everything in and around the workspace is compared with its
former state: no path that the answer is forbidden to touch may differ, nor anything outside the workspace, nor git's
own files, nor a test or its configuration.

The answers of `heldout` were written from the task's text alone, without sight of the implementation; those of
`hostile_own` with the implementation at hand.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import stat
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import _paths  # noqa: F401
from _figures import expect_at_least, expect_equal, print_figures
from heldout.hostile import HOSTILE as HELD_OUT
from heldout.hostile import Hostile, build
from hostile_own import HOSTILE as OWN
from redstart.app.runs import get_result_snapshot
from redstart.app.wire import load_engine
from redstart.core.chat import Ask
from redstart.core.run import Attempt, Level, Limits, Mode, Result, RunSpec, RunState, Step, Suite
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.engines.step_driver import drive
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.repo.handover import HandoverContext, apply_patch, list_changes
from support.rig import Rig, make_rig
from support.scenarios import CARD

DAWN = datetime(2030, 1, 1, tzinfo=UTC)
TARGET = "tests/test_prices.py"
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


class Played(NamedTuple):
    """The result of one answer. `wrote` lists all paths that it touched, `harm` those that it must not touch."""

    name: str
    group: str
    result: Result | None
    why: str
    wrote: tuple[str, ...]
    harm: tuple[str, ...]
    seconds: float


def play(hostile: Hostile, top: Path) -> Played:
    """Play an answer from its text to the working tree, inside the empty folder `top`. Raises what the loop raises."""
    began = time.monotonic()
    parent = top / "parent"
    parent.mkdir()
    workspace = build(parent)
    _commit(workspace)
    before = hash_files(parent)
    with _open_rig(top / "home") as rig:
        state = asyncio.run(_drive(rig, workspace, hostile.render(parent).decode()))
        _check_out_and_apply(
            rig, state, HandoverContext(workspace, rig.adapters.blobs, top / "home" / "applied.json", "run")
        )
    after = hash_files(parent)
    wrote = tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))
    outside_files = tuple(
        sorted(str(path.relative_to(top)) for path in top.iterdir() if path.name not in ("parent", "home"))
    )
    harm = (*outside_files, *(path for path in wrote if hostile.forbids(path) or explain_prohibition(path)))
    return Played(
        hostile.name, hostile.group, state.result, _explain_result(state), wrote, harm, time.monotonic() - began
    )


def hash_files(folder: Path) -> dict[str, str]:
    """Return the kind, permissions and content hash of every file, link and folder below. Links are not followed."""
    entries: dict[str, str] = {}
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(place) / name
            file_status = path.lstat()
            content = b""
            if stat.S_ISLNK(file_status.st_mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(file_status.st_mode):
                content = path.read_bytes()
            entries[os.fsdecode(path.relative_to(folder))] = (
                f"{file_status.st_mode:o} {hashlib.sha256(content).hexdigest()}"
            )
    return entries


def explain_prohibition(path: str) -> str:
    """Return why no answer may touch this path, relative to the parent; empty if some answers may."""
    top, _, inside = path.partition("/")
    if top != "ws":
        return "it is outside the workspace"
    if any(part.casefold() == ".git" for part in inside.split("/")):
        return "it is git's own"
    protection = find_protection(inside)
    return protection.words if protection else ""


async def _drive(rig: Rig, workspace: Path, answer: str) -> RunState:
    base = rig.trees.take(workspace)
    rig.with_suite(create_fake_suite(base.tree))
    rig.with_model(lambda ask: _reply(ask, answer))
    environment = Environment(mount=str(workspace), python="/usr/bin/python3")
    suite = Suite(runner="pytest", environment=rig.adapters.blobs.put(environment.model_dump_json().encode()))
    spec = RunSpec(mode=Mode.fix, base=base, suite=suite, repo="ws", limits=Limits(attempts=1), verify=Level.quick)
    state = RunState(run_id=rig.adapters.world.generate_id(), spec=spec, base=base, now=Attempt(entry=Step.reproduce))
    await rig.adapters.store.create(state, folder=str(workspace), created=DAWN)
    claim = await rig.adapters.store.claim(state.run_id)
    return (await drive(rig.adapters, claim, load_engine("inline"))).state


def create_fake_suite(base: str) -> Callable[[Execution], Completed]:
    """Return a fake sandbox in which the test fails on the tree `base` and passes on any other."""

    def run(execution: Execution) -> Completed:
        is_red = execution.snapshot.tree == base
        failure_xml = '<failure message="assert 4 == 3">E       assert 4 == 3</failure>' if is_red else ""
        case = (
            f'<testcase classname="tests.test_prices" name="test_total" file="{TARGET}" '
            f'time="0.01">{failure_xml}</testcase>'
        )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{case}</testsuite></testsuites>'
        cause = ExitCause.failed if is_red else ExitCause.ok
        return Completed(exit_code=int(is_red), cause=cause, output="made up\n", files={"junit.xml": xml}, wall=0.01)

    return run


def _reply(ask: Ask, answer: str) -> str:
    return {"patch": answer, "plan": '{"summary": "do it", "subtasks": []}'}.get(ask.question, CARD)


def _check_out_and_apply(rig: Rig, state: RunState, desk: HandoverContext) -> None:
    snapshot = state.now.apply.snapshot if state.now.apply else None
    if snapshot is not None:
        with rig.trees.checkout(snapshot):
            pass
    if (final_snapshot := get_result_snapshot(state)) is not None:
        apply_patch(desk, list_changes(rig.trees, state.spec.base, final_snapshot))


@contextmanager
def _open_rig(folder: Path) -> Iterator[Rig]:
    rig = make_rig(folder)
    try:
        yield rig
    finally:
        rig.trees.close()


def _commit(workspace: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *arguments], cwd=workspace, check=True, env={**os.environ, **NOBODY})
    (workspace / ".git" / "hooks").mkdir(exist_ok=True)


def _explain_result(state: RunState) -> str:
    messages = [state.reason, state.now.patch.fault if state.now.patch else ""]
    if state.now.apply is not None:
        messages += [f"{reject.path[:60]}: {reject.reason}" for reject in state.now.apply.rejects]
    if state.now.check is not None:
        messages += [finding.message for finding in state.now.check.first]
    return "; ".join(item for item in messages if item)


def play_all(title: str, answers: Sequence[Hostile]) -> list[Played]:
    print(f"{title} ({len(answers)})")
    results: list[Played] = []
    for hostile in answers:
        with tempfile.TemporaryDirectory(prefix="redstart-hostile-") as name:
            result = play(hostile, Path(name).resolve())
        summary = f"ESCAPED {', '.join(result.harm[:3])}" if result.harm else result.why[:90]
        print(
            f"  {result.name:<28} {result.group:<20} {result.result or '':<10} {result.seconds:5.1f} s  {summary}",
            flush=True,
        )
        results.append(result)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="no difference: all of it is short")
    parser.parse_args()
    held_out = play_all("held out", HELD_OUT)
    own_results = play_all("our own", OWN)
    all_results = [*held_out, *own_results]
    groups = Counter(item.group for item in all_results)
    print(", ".join(f"{count} {group}" for group, count in groups.most_common()))
    figures = [
        expect_equal("escaped", sum(bool(item.harm) for item in all_results), 0),
        expect_equal("escaped_heldout", sum(bool(item.harm) for item in held_out), 0),
        expect_at_least("cases", len(all_results), 60),
    ]
    print_figures("hostile", figures)


if __name__ == "__main__":
    main()

"""Gets red: the suite on the untouched snapshot. Where there is no test yet (create), asks for tests first."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from redstart.core.change import Edit, EditKind, Snapshot
from redstart.core.chat import Ask, Tier
from redstart.core.report import Counts, Ids, Report, Reproduced
from redstart.core.run import Mode, RunState
from redstart.core.shell import ExitCause
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.parse import parse
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.render import data, render, section
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.execute import SuiteRun, run_suite


async def reproduce(run: RunState, ports: Ports) -> Reproduced:
    if run.spec.mode is Mode.create:
        return await _write_tests(run, ports)
    done = await _suite(run, ports, run.spec.base)
    return _reproduced(run, ports, done)


async def _write_tests(run: RunState, ports: Ports) -> Reproduced:
    messages = render(
        "reproduce",
        goal=sections.goal(run.spec.goal),
        plan=sections.plan(run.now.plan),
        package=section("Package name", data("user", run.spec.repo, 100)),
        tried=section("Why the last tests were not taken", run.history[-1].reason) if run.history else "",
    )
    answer = await ports.model.ask(Ask(question="reproduce", tier=Tier.strong, messages=messages))
    edits = parse(answer.text).edits
    fault = answer.fault.value if answer.fault else _why_not(edits)
    if fault:
        return _no_tests(run, fault)
    files = {edit.path: edit.text.encode() for edit in edits}
    snapshot = ports.trees.write(run.spec.base, files)
    done = await _suite(run, ports, snapshot)
    return _reproduced(run, ports, done, tests=tuple(sorted(files)), snapshot=snapshot)


def _why_not(edits: Sequence[Edit]) -> str:
    """Why these are no tests to start from; empty where they are."""
    if not edits:
        return "the answer held no test file"
    for edit in edits:
        if edit.kind is not EditKind.block or edit.search.strip() or not is_test_path(edit.path):
            return f"{edit.path or 'a diff'} is no new test file"
        try:
            tree = ast.parse(edit.text)
        except SyntaxError as error:
            return f"{edit.path} does not parse: {error.msg} (line {error.lineno})"
        if not any(_asserts(node) for node in ast.walk(tree)):
            return f"{edit.path} asserts nothing"
    return ""


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    return isinstance(node, ast.Attribute) and (node.attr == "raises" or node.attr.startswith("assert"))


def _no_tests(run: RunState, fault: str) -> Reproduced:
    nothing = Report(runner=run.spec.suite.runner, counts=Counts(), cause=ExitCause.ok, exit_code=0, fault=fault)
    return Reproduced(report=nothing, trouble="no_tests", remedy=fault)


async def _suite(run: RunState, ports: Ports, snapshot: Snapshot) -> SuiteRun:
    source = set(ports.trees.files(snapshot))
    named = partial(sign, is_source=lambda path: path in source and not protected(path))
    return await run_suite(ports.sandbox, ports.blobs, run.spec, snapshot, sign=named)


def _reproduced(
    run: RunState, ports: Ports, done: SuiteRun, tests: tuple[str, ...] = (), snapshot: Snapshot | None = None
) -> Reproduced:
    red = [case.id for case in done.cases if case.red]
    wanted = [id_ for id_ in red if not run.spec.targets or id_ in run.spec.targets]
    trouble = {"": "", "no_tests": "no_tests"}.get(done.trouble, "environment")
    if not trouble and not wanted:
        trouble = "already_green" if not red else "no_tests"
    return Reproduced(
        report=done.report,
        targets=Ids.of(wanted),
        targets_full=ports.blobs.put("\n".join(wanted).encode()),
        trouble=trouble,
        remedy=done.report.fault,
        tests=tests,
        snapshot=snapshot,
    )

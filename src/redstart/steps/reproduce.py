"""Gets red: the suite on the untouched snapshot. Where there is no test yet (create), asks for tests first."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from redstart.core.change import Edit, EditKind, Snapshot
from redstart.core.chat import Ask, Tier
from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import FIRST, Case, Counts, Ids, Report, Reproduced
from redstart.core.run import Mode, RunState
from redstart.core.shell import Environment, ExitCause
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.parse import parse
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.render import data, render, section
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.ground import Ground, classify, classify_run
from redstart.toolkit.suites.project import project_of
from redstart.toolkit.suites.sentinel import own_packages

SAID = 3
"""How many reasons the last sentence of a run holds."""


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
    own = () if run.spec.mode is Mode.create else own_packages(ports.trees.files(snapshot))
    signed = _named(ports, snapshot)
    return await run_suite(ports.sandbox, ports.blobs, run.spec, snapshot, sign=signed, packages=own)


def _named(ports: Ports, snapshot: Snapshot) -> Callable[[Case], Signature]:
    source = set(ports.trees.files(snapshot))
    return partial(sign, is_source=lambda path: path in source and not protected(path))


def _reproduced(
    run: RunState, ports: Ports, done: SuiteRun, tests: tuple[str, ...] = (), snapshot: Snapshot | None = None
) -> Reproduced:
    red = [case for case in done.cases if case.red]
    lacking = _lacking(run, ports, done)
    asked = [case for case in red if not run.spec.targets or case.id in run.spec.targets]
    wanted = [case for case in asked if case.id not in lacking]
    trouble = {"": "", "no_tests": "no_tests"}.get(done.trouble, "environment")
    if done.misplaced:
        return Reproduced(report=done.report, trouble="environment", remedy=clip(done.misplaced, 600))
    if not trouble and not wanted:
        trouble = "environment" if asked else "no_tests" if red else "already_green"
    grounds, first = _told(lacking)
    remedy = first.remedy if first else ""
    return Reproduced(
        report=_about(ports, run, done.report, wanted) if lacking and wanted else done.report,
        targets=Ids.of(case.id for case in wanted),
        targets_full=ports.blobs.put("\n".join(case.id for case in wanted).encode()),
        trouble=trouble,
        remedy=_sentence(done.report.fault, grounds, remedy) if trouble else remedy,
        grounds=grounds,
        tests=tests,
        snapshot=snapshot,
    )


def _lacking(run: RunState, ports: Ports, done: SuiteRun) -> dict[str, Ground]:
    """The red tests that no edit can make green, each with its reason; a run without results is named by nothing.

    What `create` has just written may import whatever is still to be made, so nothing is missing there.
    """
    if run.spec.mode is Mode.create:
        return {}
    base = run.spec.base
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    read = cache(partial(ports.trees.read, base))  # hundreds of red tests share a file
    project = project_of(ports.trees.files(base), read, environment.mount)
    if done.trouble:
        output = ports.blobs.get(done.report.output).decode("utf-8", "replace")
        whole = classify_run(done.trouble, output, done.report.cause, project)
        return {"": whole} if whole else {}
    found = ((case.id, classify(case, project)) for case in done.cases if case.red)
    return {id_: ground for id_, ground in found if ground is not None}


def _told(lacking: Mapping[str, Ground]) -> tuple[tuple[str, ...], Ground | None]:
    """The reasons in words, the most frequent first, and the first of them itself."""
    counted = Counter(ground.words for id_, ground in lacking.items() if id_).most_common()
    texts = [f"{words} ({count} {'test' if count == 1 else 'tests'})" for words, count in counted]
    whole = lacking.get("")
    ordered = [whole] if whole else [one for words, _ in counted for one in lacking.values() if one.words == words]
    return tuple([whole.words] if whole else texts[:FIRST]), next(iter(ordered), None)


def _sentence(fault: str, grounds: Sequence[str], remedy: str) -> str:
    """What the user reads where the run ends here."""
    if not grounds:
        return fault
    more = f"; and {len(grounds) - SAID} other reasons" if len(grounds) > SAID else ""
    after = re.search(r"after \d+ seconds", fault.partition("\n")[0])
    return f"{'; '.join(grounds[:SAID])}{more}{f' ({after[0]})' if after else ''}. What to do: {remedy}."


def _about(ports: Ports, run: RunState, report: Report, wanted: Sequence[Case]) -> Report:
    """The report as the later steps read it: named by, and showing, the tests that an edit can make green."""
    shown = tuple(case.brief() for case in wanted[:FIRST])
    return report.model_copy(update={"cases": shown, "signature": _named(ports, run.spec.base)(wanted[0])})

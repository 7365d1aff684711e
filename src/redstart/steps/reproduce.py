"""Gets red: the suite on the untouched snapshot. Where there is no test yet (create), asks for tests first."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from posixpath import join
from typing import NamedTuple

from redstart.core.change import Edit, EditKind, Snapshot
from redstart.core.chat import Answer, Ask, Tier
from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import FIRST, Case, CaseList, Counts, Ids, Repeat, Report, Reproduced
from redstart.core.run import Mode, RunState
from redstart.core.shell import PINNED, Environment, ExitCause, Variation
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.levels import MEASURES, forecast
from redstart.toolkit.honesty.verdict import green_among
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.parse import parse
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import Reading
from redstart.toolkit.prompts.asking import ask_until, repair_note
from redstart.toolkit.prompts.render import data, render, section
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.ground import Ground, classify, classify_run
from redstart.toolkit.suites.project import project_of
from redstart.toolkit.suites.select import chooser
from redstart.toolkit.suites.sentinel import own_packages
from redstart.toolkit.suites.view import View

NONE_CHOSEN = "no test has the ids, or fits the expression, that you gave. What to do: redstart fix without them."
CHOSEN_GREEN = "the tests that you chose are green already"
AGAIN = "when it runs again without the other tests"
HASH_SEED = "hash seed"
SAID = 3
"""How many reasons the last sentence of a run holds."""


class Varied(NamedTuple):
    """What a repeat did in another way: in a word, and all of it."""

    name: str
    vary: Variation


async def reproduce(run: RunState, ports: Ports) -> Reproduced:
    if run.spec.mode is Mode.create:
        return await _write_tests(run, ports)
    done = await _suite(run, ports, run.spec.base)
    return await _steady(run, ports, _reproduced(run, ports, done))


async def _write_tests(run: RunState, ports: Ports) -> Reproduced:
    messages = render(
        "reproduce",
        goal=sections.goal(run.spec.goal),
        plan=sections.plan(run.now.plan),
        package=section("Package name", data("user", run.spec.repo, 100)),
        tried=section("Why the last tests were not taken", run.history[-1].reason) if run.history else "",
    )
    asked = Ask(question="reproduce", tier=Tier.strong, messages=messages)
    heard = await ask_until(ports.model, asked, _read_tests, note=repair_note, repairs=1)
    if heard.value is None:
        return _no_tests(run, heard.fault)
    files = {edit.path: edit.text.encode() for edit in heard.value}
    snapshot = ports.trees.write(run.spec.base, files)
    done = await _suite(run, ports, snapshot)
    return _reproduced(run, ports, done, tests=tuple(sorted(files)), snapshot=snapshot)


def _read_tests(answer: Answer) -> Reading[Sequence[Edit]]:
    parsed = parse(answer.text)
    fault = parsed.fault or _why_not(parsed.edits)
    return Reading(None, fault) if fault or answer.fault else Reading(parsed.edits)


def _why_not(edits: Sequence[Edit]) -> str:
    """Why these are no tests to start from; empty where they are."""
    if not edits:
        return "the answer held no test file"
    for edit in edits:
        if edit.kind not in (EditKind.block, EditKind.whole) or edit.search.strip() or not is_test_path(edit.path):
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


async def _suite(
    run: RunState, ports: Ports, snapshot: Snapshot, ids: Sequence[str] = (), vary: Variation = PINNED
) -> SuiteRun:
    suite = run.spec.suite
    shown = [suite.as_shown(path) for path in ports.trees.files(snapshot)]
    own = () if run.spec.mode is Mode.create else own_packages(path for path in shown if not path.startswith("../"))
    signed = _named(run, ports, snapshot)
    return await run_suite(
        ports.sandbox, ports.blobs, run.spec, snapshot, sign=signed, ids=ids, packages=() if ids else own, vary=vary
    )


def _named(run: RunState, ports: Ports, snapshot: Snapshot) -> Callable[[Case], Signature]:
    view = View(run.spec.suite, ports.trees.files(snapshot), partial(ports.trees.read, snapshot))
    return partial(sign, is_source=view.source(protected))


def _reproduced(
    run: RunState, ports: Ports, done: SuiteRun, tests: tuple[str, ...] = (), snapshot: Snapshot | None = None
) -> Reproduced:
    red = [case for case in done.cases if case.red]
    lacking = _lacking(run, ports, done)
    chosen = chooser(run.spec.targets, run.spec.keyword)
    asked = [case for case in red if chosen(case.id)]
    wanted = [case for case in asked if case.id not in lacking]
    trouble = {"": "", "no_tests": "no_tests"}.get(done.trouble, "environment")
    if done.misplaced:
        return Reproduced(report=done.report, trouble="environment", remedy=clip(done.misplaced, 600))
    if not trouble and not wanted:
        trouble = "environment" if asked else "already_green"
        if not any(chosen(case.id) for case in done.cases):
            return Reproduced(report=done.report, trouble="no_tests", remedy=NONE_CHOSEN)
        if red and not asked:
            return Reproduced(report=done.report, trouble=trouble, remedy=CHOSEN_GREEN)
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


async def _steady(run: RunState, ports: Ports, found: Reproduced) -> Reproduced:
    """The same without the flakes: a red test that is green when one thing is done otherwise is no target."""
    measures = MEASURES[run.spec.verify].before
    if found.trouble:
        return found
    wanted = ports.blobs.get(found.targets_full).decode().splitlines()
    flaky: dict[str, Varied] = {}
    repeats: list[Repeat] = []
    seconds = 0.0
    for varied, vary in measures:
        left = [one for one in wanted if one not in flaky]
        if not left:
            break
        done = await _suite(run, ports, run.spec.base, left, vary)
        green = green_among(left, done.cases)
        flaky |= dict.fromkeys(sorted(green), Varied(varied, vary))
        repeats.append(Repeat(patched=False, varied=varied, green=len(green), red=len(left) - len(green)))
        seconds = max(seconds, done.report.seconds)
    told = await _named_flakes(run, ports, flaky) if flaky else ()
    took = round(forecast(run.spec.verify, found.report.seconds, seconds), 1)
    proven = found.model_copy(update={"flaky": told, "repeats": tuple(repeats), "forecast": took})
    return _without(run, ports, proven, set(flaky)) if flaky else proven


async def _named_flakes(run: RunState, ports: Ports, flaky: Mapping[str, Varied]) -> tuple[str, ...]:
    """The first of them with what each depends on.

    A repeat differs from the first run not only in what it varies: the other tests are left out, chance has its say,
    and the hash seed is another too. So they run with nothing varied, then with the hash seed alone.
    """
    again = await _suite(run, ports, run.spec.base, sorted(flaky))
    whens = {id_: f"with another {one.name}" for id_, one in flaky.items()}
    whens |= dict.fromkeys(green_among(flaky, again.cases), AGAIN)
    for seed in sorted({one.vary.hash_seed for one in flaky.values() if one.name != HASH_SEED}):
        alike = sorted(id_ for id_, one in flaky.items() if one.vary.hash_seed == seed and whens[id_] != AGAIN)
        if alike:
            hashed = await _suite(run, ports, run.spec.base, alike, Variation(hash_seed=seed))
            whens |= dict.fromkeys(green_among(alike, hashed.cases), f"with another {HASH_SEED}")
    return tuple(f"{clip(id_, 200)} (green {when})" for id_, when in whens.items())[:FIRST]


def _without(run: RunState, ports: Ports, found: Reproduced, flaky: set[str]) -> Reproduced:
    every = CaseList.model_validate_json(ports.blobs.get(found.report.full)).cases
    wanted = [one for one in ports.blobs.get(found.targets_full).decode().splitlines() if one not in flaky]
    if not wanted:
        remedy = f"every red test is flaky: {'; '.join(found.flaky[:SAID])}"
        return found.model_copy(update={"targets": Ids(), "trouble": "flaky", "remedy": remedy})
    left = set(wanted)
    report = _about(ports, run, found.report, [case for case in every if case.id in left])
    kept = ports.blobs.put("\n".join(wanted).encode())
    return found.model_copy(update={"report": report, "targets": Ids.of(wanted), "targets_full": kept})


def _lacking(run: RunState, ports: Ports, done: SuiteRun) -> dict[str, Ground]:
    """The red tests that no edit can make green, each with its reason; a run without results is named by nothing.

    What `create` has just written may import whatever is still to be made, so nothing is missing there.
    """
    if run.spec.mode is Mode.create:
        return {}
    base = run.spec.base
    suite = run.spec.suite
    environment = Environment.model_validate_json(ports.blobs.get(suite.environment))
    view = View(suite, ports.trees.files(base), partial(ports.trees.read, base))
    project = project_of(view.kept, view.read, join(environment.mount, suite.folder).rstrip("/"))
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
    return report.model_copy(update={"cases": shown, "signature": _named(run, ports, run.spec.base)(wanted[0])})

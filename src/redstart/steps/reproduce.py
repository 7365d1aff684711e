"""Gets red: the suite on the untouched snapshot. Where there is no test yet (create), asks for tests first.

Of an issue and of an improvement a test is asked for too: the program is there, and its other tests stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from posixpath import join
from typing import Any

from redstart.core.change import Edit, EditKind, Snapshot
from redstart.core.chat import Answer, Ask, Fault, Message, Tier
from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import FIRST, Case, CaseList, Counts, Ids, Repeat, Report, Reproduced
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.run import Mode, RunState
from redstart.core.shell import PINNED, Environment, ExitCause, Variation
from redstart.core.tasks import CreateTask, FixTask, ImproveTask
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.honesty.levels import MEASURES, forecast
from redstart.toolkit.honesty.verdict import green_among
from redstart.toolkit.installs.planned import with_planned_packages
from redstart.toolkit.languages.registry import is_code, is_test_path, language_of_test
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.looking.files import Files
from redstart.toolkit.looking.outline import outline
from redstart.toolkit.patching.parse import parse
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts import projects, sections
from redstart.toolkit.prompts.answers import Reading
from redstart.toolkit.prompts.asked import Shown, about_test, told_of
from redstart.toolkit.prompts.asking import Heard, ask_until, mend_tried, repair_note
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import data, section
from redstart.toolkit.retrieval.rank import BUDGET, Question
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.asked import Asked, example_of, sureness, why_unfit
from redstart.toolkit.suites.counted import with_count
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.ground import Ground, classify, classify_run
from redstart.toolkit.suites.new_tests import include_tests
from redstart.toolkit.suites.problem import SuiteProblem
from redstart.toolkit.suites.project import Project, project_of
from redstart.toolkit.suites.reasons import SAID, no_usable_test, reasons, sentence
from redstart.toolkit.suites.select import chooser
from redstart.toolkit.suites.sentinel import own_packages
from redstart.toolkit.suites.spectrum import watch
from redstart.toolkit.suites.target_language import foreign_language
from redstart.toolkit.suites.view import View
from redstart.toolkit.suites.written import said_in_full, why_no_test

NONE_CHOSEN = "no test matches the ids or the expression that you gave. What to do: run redstart fix without them."
CHOSEN_GREEN = "the tests that you chose pass already"
ASKED_AGAIN = 2
"""How often a test goes back to the model that is red by a mistake of its own, or not at all."""
ANSWER = 4096
"""Tokens of a test that is asked for."""
SHOWN_FILES, SHOWN_CODE = 12_000, 16_000
"""Characters of the project's outline, and of its code, in that question."""


async def reproduce(run: RunState, ports: Ports) -> Reproduced:
    run = run.model_copy(update={"spec": run.suited})
    ports.announce("baseline")
    if run.spec.mode is Mode.create:
        return await _first_tests(run, ports)
    if run.spec.lacks_test:
        return await _write_red_test(run, ports)
    done = await _suite(run, ports, run.spec.base)
    return await _watched(run, ports, await _steady(run, ports, _reproduced(run, ports, done)))


async def _first_tests(run: RunState, ports: Ports) -> Reproduced:
    """The tests of a new program, seen red where there is no program yet: the user's, those of its parts, or new ones.

    Tests that did not notice a broken program are written anew; what they were is kept where it is not replaced.
    """
    run = with_planned_packages(run, ports)
    spec, trees, own = run.spec, ports.trees, run.spec.task_of(CreateTask).own_tests
    if own:
        return _asking_for_something(await _red(run, ports, {path: trees.read(spec.base, path) for path in own}))
    weak = next((one.weak for one in reversed(run.history) if one.weak), "")
    held = run.draft if run.work.begun and run.draft is not None else run.base
    before = set(trees.files(spec.base))
    kept = {path: trees.read(held, path) for path in trees.files(held) if is_test_path(path) and path not in before}
    if run.work.begun and kept and not weak:
        return await _red(run, ports, kept)
    asked = _ask(run, _about_new_tests(run, ports, kept if weak else {}, weak))
    heard = await ask_until(ports.model, asked, partial(_read_new_tests, before), note=repair_note, repairs=1)
    if heard.value is None:
        return _no_tests(run, heard)
    new = {edit.path: edit.text.encode() for edit in heard.value}
    return await _red(run, ports, (kept if weak else {}) | new)


def _ask(run: RunState, messages: tuple[Message, ...]) -> Ask:
    return Ask(question="reproduce", tier=Tier.strong, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))


async def _red(run: RunState, ports: Ports, tests: Mapping[str, bytes | None]) -> Reproduced:
    """These tests on the ground without the program that they are about."""
    snapshot = ports.trees.write(run.spec.base, tests)
    done = await _suite(run, ports, snapshot)
    return with_count(_reproduced(run, ports, done, tuple(sorted(tests)), snapshot), tests)


def _asking_for_something(found: Reproduced) -> Reproduced:
    """The user's own tests; those that are green where there is no program ask for none."""
    if found.trouble is not Problem.already_green:
        return found
    said = "the tests that you gave are green without any program. What to do: give tests that fail until it is there."
    return found.model_copy(update={"trouble": Problem.no_tests, "remedy": said})


def _about_new_tests(run: RunState, ports: Ports, kept: Mapping[str, bytes | None], weak: str) -> tuple[Message, ...]:
    last = run.history[-1].reason if run.history else ""
    texts = (data(path, (text or b"").decode(errors="replace")) for path, text in sorted(kept.items()))
    again = "Give the files in which something changes again, each as a whole."
    about = {
        "goal": sections.goal(run.spec.goal, run.spec.whole),
        "package": projects.project(run.spec, run.packages),
        "tests": section("The tests so far", *texts, again) if kept else "",
        "tried": section("Why the last tests were not taken", *dict.fromkeys((weak, last))),
    }
    room = run.spec.asks.room(ANSWER)
    if run.spec.asks.brief:
        return fitted(ports.note, "brief/tests", room, **about, answer=projects.brief_answer_with_tests(run.spec))
    return fitted(
        ports.note,
        "reproduce",
        room,
        **about,
        rules=projects.rules_of_tests(run.spec, run.packages),
        answer=projects.answer_with_tests(run.spec),
        plan=sections.plan(run.now.plan),
        there=projects.names_that_are_taken(run.spec, ports.trees.files(run.spec.base)),
    )


def _read_new_tests(there: Collection[str], answer: Answer) -> Reading[Sequence[Edit]]:
    reading = _read_tests(answer)
    taken = [edit.path for edit in reading.value or () if edit.path in there]
    return Reading(None, f"{taken[0]} is there already: choose another name") if taken else reading


async def _write_red_test(run: RunState, ports: Ports) -> Reproduced:
    """A test of what an issue or an improvement is about, seen red beside the tests that are there.

    An improvement of a program that has red tests is to make those green. A test that is red by a mistake of its own
    goes back to the model with the reason. What an earlier improvement has proven is not run again without the test.
    """
    is_proven = isinstance(run.spec.task, ImproveTask) and run.spec.task.proven
    before = None if is_proven else await _suite(run, ports, run.spec.base)
    if before and (before.misplaced or before.trouble not in (SuiteProblem.none, SuiteProblem.no_tests)):
        return _reproduced(run, ports, before)
    if before and run.spec.mode is Mode.improve and any(case.red for case in before.cases):
        found = _reproduced(run, ports, before)
        if not found.trouble:
            return await _watched(run, ports, await _steady(run, ports, found))

    async def attempt(answer: Answer) -> Reading[Reproduced]:
        return await _seen_red(run, ports, before, answer)

    asked = _ask(run, _about_test(run, ports))
    answer = await ports.model.ask(asked)
    heard = await mend_tried(ports.model, asked, answer, attempt, note=repair_note, repairs=ASKED_AGAIN)
    if heard.value is None:
        if heard.answer.fault is Fault.budget:
            return _no_tests(run, heard)
        fault = no_usable_test(heard.repairs + 1, heard.fault)
        return _no_tests(run, heard._replace(fault=fault), Problem.no_usable_test)
    spec = run.spec.with_command(heard.value.command).model_copy(update={"base": heard.value.snapshot})
    there = run.model_copy(update={"spec": spec})
    return await _watched(there, ports, await _steady(there, ports, heard.value))


async def _seen_red(run: RunState, ports: Ports, before: SuiteRun | None, answer: Answer) -> Reading[Reproduced]:
    """The new test, run beside all others on the code as it is; why it is of no use otherwise."""
    base, trees = run.spec.base, ports.trees
    reading = _read_new_tests(set(trees.files(base)), answer)
    if reading.value is None:
        return Reading(None, reading.error)
    files = {edit.path: edit.text.encode() for edit in reading.value}
    snapshot = trees.write(base, files)
    command = include_tests(run.spec.suite, files)
    run = run.model_copy(update={"spec": run.spec.with_command(command)})
    done = await _suite(run, ports, snapshot)
    if done.trouble or done.misplaced:
        return Reading(None, clip(f"the tests could not be run with it: {done.report.fault or done.misplaced}", 600))
    view = View(run.spec.suite, trees.files(snapshot), partial(trees.read, snapshot))
    new = {run.spec.suite.as_shown(path) for path in files}

    def is_new(id_: str) -> bool:
        return view.file_of(id_) in new

    if before is None and any(case.red and not is_new(case.id) for case in done.cases):
        before = await _suite(run, ports, base)
    held = Asked(told_of(run), _project(run, ports, snapshot), is_new)
    if unfit := why_unfit(before.cases if before else (), done.cases, held):
        ports.note(test_refused=unfit)
        return Reading(None, unfit)
    wanted = [case for case in done.cases if case.red and held.is_new(case.id)]
    targets = tuple(case.id for case in wanted)
    chosen = run.model_copy(update={"spec": run.spec.model_copy(update={"base": snapshot})})
    found = _reproduced(chosen, ports, done, tests=tuple(sorted(files)), snapshot=snapshot, targets=targets)
    sure = sureness(answer.text)
    told = {"report": _about(ports, chosen, done.report, wanted), "sure": sure.level, "sure_why": sure.why}
    return Reading(found.model_copy(update=told | {"command": command}))


def _about_test(run: RunState, ports: Ports) -> tuple[Message, ...]:
    base, trees = run.spec.base, ports.trees
    read, paths = partial(trees.read, base), trees.files(base)
    view = View(run.spec.suite, paths, read)
    sought = Question(cases=(), goal=told_of(run), tests=(), is_test=is_test_path, budget=SHOWN_CODE)
    found = rank(sought, sorted(view.kept), view.read, walk_search(sorted(view.kept), view.read))
    files = outline(Files(paths, read, partial(trees.size, base)), is_test_path, SHOWN_FILES)
    example = example_of(filter(language_of_test, paths), read)
    goal = sections.goal(run.spec.goal)
    if isinstance(run.spec.task, FixTask):
        goal = section("Issue", data("issue", run.spec.goal, 16_000))
    return about_test(run, goal, Shown(files, found.moved(view.kept), read, example), ANSWER, ports.note)


def _read_tests(answer: Answer) -> Reading[Sequence[Edit]]:
    is_cut = answer.fault is Fault.truncated
    parsed = parse(said_in_full(answer.text) if is_cut else answer.text)
    fault = parsed.fault or _why_not(parsed.edits)
    return Reading(None, fault) if fault or (answer.fault and not is_cut) else Reading(parsed.edits)


def _why_not(edits: Sequence[Edit]) -> str:
    """Why these are no tests to start from; empty where they are."""
    if not edits:
        return "the answer held no test file"
    for edit in edits:
        if edit.kind not in (EditKind.block, EditKind.whole) or edit.search.strip() or not language_of_test(edit.path):
            return f"{edit.path or 'a diff'} is no new test file"
        if fault := why_no_test(edit.path, edit.text):
            return fault
    return ""


def _no_tests(run: RunState, heard: Heard[Any], trouble: Problem = Problem.no_tests) -> Reproduced:
    nothing = Report(runner=run.spec.suite.runner, counts=Counts(), cause=ExitCause.ok, exit_code=0, fault=heard.fault)
    is_over = heard.answer.fault is Fault.budget
    return Reproduced(report=nothing, trouble=trouble, over_budget=is_over, remedy=heard.fault)


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
    run: RunState,
    ports: Ports,
    done: SuiteRun,
    tests: tuple[str, ...] = (),
    snapshot: Snapshot | None = None,
    targets: tuple[str, ...] = (),
) -> Reproduced:
    red = [case for case in done.cases if case.red]
    lacking = {} if tests else _lacking(run, ports, done)
    named = run.spec.task if isinstance(run.spec.task, FixTask) else FixTask()
    chosen = chooser(targets or named.targets, named.keyword)
    asked = [case for case in red if chosen(case.id)]
    wanted = [case for case in asked if case.id not in lacking]
    known = {SuiteProblem.none: Problem.none, SuiteProblem.no_tests: Problem.no_tests}
    trouble = known.get(done.trouble, Problem.environment)
    if why := done.misplaced or ("" if red else done.unexplained):
        return Reproduced(report=done.report, trouble=Problem.environment, remedy=clip(why, 600))
    if not trouble and not wanted:
        trouble = Problem.environment if asked else Problem.already_green
        if not any(chosen(case.id) for case in done.cases):
            return Reproduced(report=done.report, trouble=Problem.no_tests, remedy=NONE_CHOSEN)
        if red and not asked:
            return Reproduced(report=done.report, trouble=trouble, remedy=CHOSEN_GREEN)
    grounds, first = reasons(lacking)
    remedy = first.remedy if first else ""
    return Reproduced(
        report=_about(ports, run, done.report, wanted) if lacking and wanted else done.report,
        targets=Ids.of(case.id for case in wanted),
        targets_full=ports.blobs.put("\n".join(case.id for case in wanted).encode()),
        language=foreign_language(run.spec.suite, ports.trees, snapshot or run.spec.base, [case.id for case in wanted]),
        trouble=trouble,
        remedy=sentence(done.report.fault, grounds, remedy) if trouble else remedy,
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
    flaky: dict[str, tuple[str, Variation]] = {}
    repeats: list[Repeat] = []
    seconds = 0.0
    for number, (varied, vary) in enumerate(measures, 1):
        left = [one for one in wanted if one not in flaky]
        if not left:
            break
        ports.announce(f"rerun {number} of {len(measures)}", tests=len(left))
        done = await _suite(run, ports, run.spec.base, left, vary)
        green = green_among(left, done.cases)
        flaky |= dict.fromkeys(sorted(green), (varied, vary))
        repeats.append(Repeat(patched=False, varied=varied, green=len(green), red=len(left) - len(green)))
        seconds = max(seconds, done.report.seconds)
    told = await _named_flakes(run, ports, flaky) if flaky else ()
    took = round(forecast(run.spec.verify, found.report.seconds, seconds), 1)
    proven = found.model_copy(update={"flaky": told, "repeats": tuple(repeats), "forecast": took})
    return _without(run, ports, proven, set(flaky)) if flaky else proven


async def _watched(run: RunState, ports: Ports, found: Reproduced) -> Reproduced:
    """With the lines that the targets run, where there is more code than can be shown whole."""
    base, trees = run.spec.base, ports.trees
    code = (path for path in trees.files(base) if is_code(path) and not is_test_path(path))
    if found.trouble or sum(trees.size(base, path) or 0 for path in code) <= BUDGET:
        return found
    cases = CaseList.model_validate_json(ports.blobs.get(found.report.full)).cases
    red = ports.blobs.get(found.targets_full).decode().splitlines()
    ports.announce("tracing")
    seen = await watch(ports.sandbox, ports.blobs, run.spec, red, cases)
    return found.model_copy(update={"spectrum": ports.blobs.put(seen.model_dump_json().encode())}) if seen else found


async def _named_flakes(run: RunState, ports: Ports, flaky: Mapping[str, tuple[str, Variation]]) -> tuple[str, ...]:
    """The first of them with what each depends on.

    A repeat differs from the first run not only in what it varies: the other tests are left out, chance has its say,
    and the hash seed is another too. So they run with nothing varied, then with the hash seed alone.
    """
    again = await _suite(run, ports, run.spec.base, sorted(flaky))
    whens = {id_: f"with another {name}" for id_, (name, _) in flaky.items()}
    by_chance = green_among(flaky, again.cases)
    whens |= dict.fromkeys(by_chance, "when it runs again without the other tests")
    for seed in sorted({vary.hash_seed for _, vary in flaky.values() if vary != Variation(hash_seed=vary.hash_seed)}):
        alike = sorted(id_ for id_, (_, vary) in flaky.items() if vary.hash_seed == seed and id_ not in by_chance)
        if alike:
            hashed = await _suite(run, ports, run.spec.base, alike, Variation(hash_seed=seed))
            whens |= dict.fromkeys(green_among(alike, hashed.cases), "with another hash seed")
    return tuple(f"{clip(id_, 200)} (green {when})" for id_, when in whens.items())[:FIRST]


def _without(run: RunState, ports: Ports, found: Reproduced, flaky: set[str]) -> Reproduced:
    every = CaseList.model_validate_json(ports.blobs.get(found.report.full)).cases
    wanted = [one for one in ports.blobs.get(found.targets_full).decode().splitlines() if one not in flaky]
    if not wanted:
        remedy = f"every failing test is flaky: {'; '.join(found.flaky[:SAID])}"
        return found.model_copy(update={"targets": Ids(), "trouble": Problem.flaky, "remedy": remedy})
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
    project = _project(run, ports, run.spec.base)
    if done.trouble:
        output = ports.blobs.get(done.report.output).decode("utf-8", "replace")
        whole = classify_run(done.trouble, output, done.report.cause, project)
        return {"": whole} if whole else {}
    found = ((case.id, classify(case, project)) for case in done.cases if case.red)
    return {id_: ground for id_, ground in found if ground is not None}


def _project(run: RunState, ports: Ports, snapshot: Snapshot) -> Project:
    suite = run.spec.suite
    environment = Environment.model_validate_json(ports.blobs.get(suite.environment))
    view = View(suite, ports.trees.files(snapshot), partial(ports.trees.read, snapshot))
    root = join(environment.mount, suite.folder).rstrip("/")
    return project_of(view.kept, view.read, root, environment.python)


def _about(ports: Ports, run: RunState, report: Report, wanted: Sequence[Case]) -> Report:
    """The report as the later steps read it: named by, and showing, the tests that an edit can make green."""
    shown = tuple(case.brief() for case in wanted[:FIRST])
    return report.model_copy(update={"cases": shown, "signature": _named(run, ports, run.spec.base)(wanted[0])})

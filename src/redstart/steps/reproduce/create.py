"""Get the tests of a new program, and see them fail without the program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from redstart.core.chat import Message
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import CreateTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import no_tests, reproduced, run_tests
from redstart.steps.reproduce.new_tests import ANSWER, question_for_tests, read_new_tests
from redstart.toolkit.base.text import data
from redstart.toolkit.installs.planned import with_planned_packages
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.prompts import projects, sections
from redstart.toolkit.prompts.asking import ask_until, repair_note
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.suites.new_tests.counted import with_count


async def reproduce_program(run: RunState, ports: Ports) -> ReproductionResult:
    """Run the tests of a new program without the program: the user's tests, those of its parts, or new ones.

    Tests that did not detect a broken program are rewritten; old files that are not replaced are kept.
    """
    run = with_planned_packages(run, ports)
    spec, trees, own = run.spec, ports.trees, run.spec.task_of(CreateTask).own_tests
    if own:
        return _asking_for_something(await _red(run, ports, {path: trees.read(spec.base, path) for path in own}))
    weak = next((entry.weak for entry in reversed(run.history) if entry.weak), "")
    held = run.draft if run.work.begun and run.draft is not None else run.base
    before = set(trees.files(spec.base))
    kept = {path: trees.read(held, path) for path in trees.files(held) if is_test_path(path) and path not in before}
    if run.work.begun and kept and not weak:
        return await _red(run, ports, kept)
    asked = question_for_tests(run, _messages(run, ports, kept if weak else {}, weak))
    heard = await ask_until(ports.model, asked, partial(read_new_tests, before), note=repair_note, repairs=1)
    if heard.value is None:
        return no_tests(run, heard)
    new = {edit.path: edit.text.encode() for edit in heard.value}
    return await _red(run, ports, (kept if weak else {}) | new)


async def _red(run: RunState, ports: Ports, tests: Mapping[str, bytes | None]) -> ReproductionResult:
    """Run these tests on the base, without the program that they are about."""
    snapshot = ports.trees.write(run.spec.base, tests)
    done = await run_tests(run, ports, snapshot)
    return with_count(reproduced(run, ports, done, tuple(sorted(tests)), snapshot), tests)


def _asking_for_something(found: ReproductionResult) -> ReproductionResult:
    """Reject the user's tests if they pass without a program: then they require none."""
    if found.trouble is not Problem.already_green:
        return found
    said = "the tests that you gave are green without any program. What to do: give tests that fail until it is there."
    return found.model_copy(update={"trouble": Problem.no_tests, "remedy": said})


def _messages(run: RunState, ports: Ports, kept: Mapping[str, bytes | None], weak: str) -> tuple[Message, ...]:
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

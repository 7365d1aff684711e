"""Get the tests of a new program, and check that they fail without the program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from redstart.core.chat import Message
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import CreateTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import determine_targets, report_no_tests, run_tests
from redstart.steps.reproduce.new_tests import ANSWER, build_test_request, read_new_tests
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.installs.planned_packages import with_planned_packages
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.prompts import projects, sections
from redstart.toolkit.prompts.ask_model import ask_until, repair_note
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section
from redstart.toolkit.suites.new_tests.new_test_count import with_count


async def reproduce_program(run: RunState, ports: Ports) -> ReproductionResult:
    """Run the tests of a new program without the program: the user's tests, those of its parts, or new ones.

    Tests that did not detect a broken program are rewritten; old files that are not replaced are kept.
    """
    run = with_planned_packages(run, ports)
    spec, trees, own_tests = run.spec, ports.trees, run.spec.get_task(CreateTask).own_tests
    if own_tests:
        return _reject_passing_tests(
            await _run_on_base(run, ports, {path: trees.read(spec.base, path) for path in own_tests})
        )
    weakness = next((entry.weak for entry in reversed(run.history) if entry.weak), "")
    previous = run.draft if run.work.begun and run.draft is not None else run.base
    base_paths = set(trees.list_files(spec.base))
    old_tests = {
        path: trees.read(previous, path)
        for path in trees.list_files(previous)
        if is_test_path(path) and path not in base_paths
    }
    if run.work.begun and old_tests and not weakness:
        return await _run_on_base(run, ports, old_tests)
    request = build_test_request(run, _build_messages(run, ports, old_tests if weakness else {}, weakness))
    outcome = await ask_until(ports.model, request, partial(read_new_tests, base_paths), note=repair_note, repairs=1)
    if outcome.value is None:
        return report_no_tests(run, outcome)
    new = {edit.path: edit.text.encode() for edit in outcome.value}
    return await _run_on_base(run, ports, (old_tests if weakness else {}) | new)


async def _run_on_base(run: RunState, ports: Ports, tests: Mapping[str, bytes | None]) -> ReproductionResult:
    """Run these tests on the base, without the program that they are about."""
    snapshot = ports.trees.write(run.spec.base, tests)
    suite_run = await run_tests(run, ports, snapshot)
    return with_count(determine_targets(run, ports, suite_run, tuple(sorted(tests)), snapshot), tests)


def _reject_passing_tests(reproduction: ReproductionResult) -> ReproductionResult:
    """Reject the user's tests if they pass without a program: then they require none."""
    if reproduction.trouble is not Problem.already_green:
        return reproduction
    message = (
        "the tests that you gave are green without any program. What to do: give tests that fail until it is there."
    )
    return reproduction.model_copy(update={"trouble": Problem.no_tests, "remedy": message})


def _build_messages(
    run: RunState, ports: Ports, old_tests: Mapping[str, bytes | None], weakness: str
) -> tuple[Message, ...]:
    last_reason = run.history[-1].reason if run.history else ""
    texts = (wrap_untrusted(path, (text or b"").decode(errors="replace")) for path, text in sorted(old_tests.items()))
    instruction = "Give the files in which something changes again, each as a whole."
    prompt_sections = {
        "goal": sections.build_goal_section(run.spec.goal, run.spec.program_goal),
        "package": projects.describe_project(run.spec, run.packages),
        "tests": format_section("The tests so far", *texts, instruction) if old_tests else "",
        "tried": format_section("Why the last tests were not taken", *dict.fromkeys((weakness, last_reason))),
    }
    token_limit = run.spec.asks.compute_question_tokens(ANSWER)
    if run.spec.asks.brief:
        return fit_messages(
            ports.note,
            "brief/tests",
            token_limit,
            **prompt_sections,
            answer=projects.describe_brief_test_answer(run.spec),
        )
    return fit_messages(
        ports.note,
        "reproduce",
        token_limit,
        **prompt_sections,
        rules=projects.describe_test_rules(run.spec, run.packages),
        answer=projects.answer_with_tests(run.spec),
        plan=sections.plan(run.now.plan),
        there=projects.describe_existing_files(run.spec, ports.trees.list_files(run.spec.base)),
    )

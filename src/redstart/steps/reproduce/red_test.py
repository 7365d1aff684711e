"""Get a test for an issue or an improvement that a model writes and that is seen to fail."""

from __future__ import annotations

from functools import partial

from redstart.core.chat import Answer, AnswerFault, Message
from redstart.core.noun import clip
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import (
    about_targets,
    no_tests,
    project_on,
    reproduced,
    run_tests,
    with_traced_lines,
)
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.new_tests import ANSWER, question_for_tests, read_new_tests
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.languages.registry import is_test_path, language_of_test
from redstart.toolkit.looking.files import Files
from redstart.toolkit.looking.outline import outline
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.prompts.asking import WriterContext, about_test, mend_tried, repair_note, told_of
from redstart.toolkit.retrieval.rank import RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.new_tests.asked import NewTestContext, example_of, sureness, why_unfit
from redstart.toolkit.suites.new_tests.command import include_tests
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.reasons import no_usable_test
from redstart.toolkit.suites.select import chooser
from redstart.toolkit.suites.view import TreeView

ASKED_AGAIN = 2
"""How often a test goes back to the model if it fails by its own mistake, or does not fail."""
SHOWN_FILES, SHOWN_CODE = 12_000, 16_000
"""Maximum characters of the project's outline and of its code in that question."""


def can_be_joined(before: SuiteRun) -> bool:
    """Return whether a new test can run together with the existing ones, if there are any."""
    return not before.misplaced and before.trouble in (SuiteProblem.none, SuiteProblem.no_tests)


async def write_red_test(run: RunState, ports: Ports, goal: str, before: SuiteRun | None) -> ReproductionResult:
    """Ask for a test of the goal, which is a section of the question, and see it fail among the existing tests.

    A test that fails by its own mistake goes back to the model with the reason.
    """

    async def attempt(answer: Answer) -> ParsedAnswer[ReproductionResult]:
        return await _seen_red(run, ports, before, answer)

    asked = question_for_tests(run, _messages(run, ports, goal))
    answer = await ports.model.ask(asked)
    heard = await mend_tried(ports.model, asked, answer, attempt, note=repair_note, repairs=ASKED_AGAIN)
    if heard.value is None:
        if heard.answer.fault is AnswerFault.budget:
            return no_tests(run, heard)
        fault = no_usable_test(heard.repairs + 1, heard.fault)
        return no_tests(run, heard._replace(fault=fault), Problem.no_usable_test)
    spec = run.spec.with_command(heard.value.command).model_copy(update={"base": heard.value.snapshot})
    there = run.model_copy(update={"spec": spec})
    return await with_traced_lines(there, ports, await without_flakes(there, ports, heard.value))


async def _seen_red(
    run: RunState, ports: Ports, before: SuiteRun | None, answer: Answer
) -> ParsedAnswer[ReproductionResult]:
    """Run the new test with all others on the current code. If it is unusable, the error says why."""
    base, trees = run.spec.base, ports.trees
    reading = read_new_tests(set(trees.files(base)), answer)
    if reading.value is None:
        return ParsedAnswer(None, reading.error)
    files = {edit.path: edit.text.encode() for edit in reading.value}
    snapshot = trees.write(base, files)
    command = include_tests(run.spec.suite, files)
    run = run.model_copy(update={"spec": run.spec.with_command(command)})
    done = await run_tests(run, ports, snapshot)
    if done.trouble or done.misplaced:
        return ParsedAnswer(
            None, clip(f"the tests could not be run with it: {done.report.fault or done.misplaced}", 600)
        )
    view = TreeView(run.spec.suite, trees.files(snapshot), partial(trees.read, snapshot))
    new = {run.spec.suite.as_shown(path) for path in files}

    def is_new(id_: str) -> bool:
        return view.file_of(id_) in new

    if before is None and any(case.red and not is_new(case.id) for case in done.cases):
        before = await run_tests(run, ports, base)
    held = NewTestContext(told_of(run), project_on(run, ports, snapshot), is_new)
    if unfit := why_unfit(before.cases if before else (), done.cases, held):
        ports.note(test_refused=unfit)
        return ParsedAnswer(None, unfit)
    wanted = [case for case in done.cases if case.red and held.is_new(case.id)]
    targets = tuple(case.id for case in wanted)
    chosen = run.model_copy(update={"spec": run.spec.model_copy(update={"base": snapshot})})
    found = reproduced(chosen, ports, done, tests=tuple(sorted(files)), snapshot=snapshot, chosen=chooser(targets, ""))
    sure = sureness(answer.text)
    told = {"report": about_targets(ports, chosen, done.report, wanted), "sure": sure.level, "sure_why": sure.why}
    return ParsedAnswer(found.model_copy(update=told | {"command": command}))


def _messages(run: RunState, ports: Ports, goal: str) -> tuple[Message, ...]:
    base, trees = run.spec.base, ports.trees
    read, paths = partial(trees.read, base), trees.files(base)
    view = TreeView(run.spec.suite, paths, read)
    sought = RankingQuestion(cases=(), goal=told_of(run), tests=(), is_test=is_test_path, budget=SHOWN_CODE)
    found = rank(sought, sorted(view.kept), view.read, walk_search(sorted(view.kept), view.read))
    files = outline(Files(paths, read, partial(trees.size, base)), is_test_path, SHOWN_FILES)
    example = example_of(filter(language_of_test, paths), read)
    return about_test(run, goal, WriterContext(files, found.moved(view.kept), read, example), ANSWER, ports.note)

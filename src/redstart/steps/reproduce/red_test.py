"""Let a model write a test for an issue or an improvement, and check that it fails."""

from __future__ import annotations

from functools import partial

from redstart.core.chat import Answer, AnswerFault, Message
from redstart.core.frozen import clip
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import (
    determine_targets,
    load_project_view,
    report_no_tests,
    restrict_to_targets,
    run_tests,
    with_traced_lines,
)
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.new_tests import ANSWER, build_test_request, read_new_tests
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.languages.registry import find_test_language, is_test_path
from redstart.toolkit.model_tools.conversation import converse
from redstart.toolkit.model_tools.outline import outline
from redstart.toolkit.model_tools.snippets import run_snippet
from redstart.toolkit.model_tools.toolset import create_toolset
from redstart.toolkit.model_tools.visible_files import Files
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.prompts.ask_model import (
    WriterContext,
    build_test_question,
    describe_test_goal,
    repair_after_trial,
    repair_note,
)
from redstart.toolkit.retrieval.rank import RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.new_tests.command import include_tests
from redstart.toolkit.suites.new_tests.requested_tests import (
    NewTestContext,
    find_example,
    find_test_problem,
    parse_confidence,
)
from redstart.toolkit.suites.problems.reasons import describe_missing_test
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.selection import build_selector
from redstart.toolkit.suites.suite_directory import TreeView

MAX_REPAIRS = 2
"""How often a test goes back to the model if it fails by its own mistake, or does not fail."""
MAX_OUTLINE_LENGTH, MAX_CODE_LENGTH = 12_000, 16_000
"""Maximum characters of the project's outline and of its code in that question."""


def can_be_joined(baseline: SuiteRun) -> bool:
    """Return whether a new test can run together with the existing ones, if there are any."""
    return not baseline.misplaced and baseline.problem in (SuiteProblem.none, SuiteProblem.no_tests)


async def write_failing_test(run: RunState, ports: Ports, goal: str, baseline: SuiteRun | None) -> ReproductionResult:
    """Ask for a test of the goal, which is a section of the question, and check that it fails among the existing tests.

    If a test fails because of its own mistake, it goes back to the model with the reason.
    """

    async def attempt(answer: Answer) -> ParsedAnswer[ReproductionResult]:
        return await _run_new_test(run, ports, baseline, answer)

    conversation = await converse(
        ports.model,
        build_test_request(run, _build_messages(run, ports, goal)),
        create_toolset(run, ports, run.spec.base),
        run.spec.asks.session_calls,
        is_answer=lambda text: bool(parse(text).edits),
        note=lambda tool_call, result: ports.note(look=tool_call, served=result),
        run_snippet=partial(run_snippet, run.suited, ports, run.spec.base),
    )
    outcome = await repair_after_trial(
        ports.model, conversation.ask, conversation.answer, attempt, note=repair_note, repairs=MAX_REPAIRS
    )
    if outcome.value is None:
        if outcome.answer.fault is AnswerFault.budget:
            return report_no_tests(run, outcome)
        fault = describe_missing_test(outcome.repairs + 1, outcome.fault)
        return report_no_tests(run, outcome._replace(fault=fault), Problem.no_usable_test)
    spec = run.spec.with_command(outcome.value.command).model_copy(update={"base": outcome.value.snapshot})
    updated_run = run.model_copy(update={"spec": spec})
    return await with_traced_lines(updated_run, ports, await without_flakes(updated_run, ports, outcome.value))


async def _run_new_test(
    run: RunState, ports: Ports, baseline: SuiteRun | None, answer: Answer
) -> ParsedAnswer[ReproductionResult]:
    """Run the new test with all others on the current code. If it is unusable, the error says why."""
    base, trees = run.spec.base, ports.trees
    parsed = read_new_tests(set(trees.list_files(base)), answer)
    if parsed.value is None:
        return ParsedAnswer(None, parsed.error)
    files = {edit.path: edit.text.encode() for edit in parsed.value}
    snapshot = trees.write(base, files)
    command = include_tests(run.spec.suite, files)
    run = run.model_copy(update={"spec": run.spec.with_command(command)})
    suite_run = await run_tests(run, ports, snapshot)
    if suite_run.problem or suite_run.misplaced:
        return ParsedAnswer(
            None, clip(f"the tests could not be run with it: {suite_run.report.fault or suite_run.misplaced}", 600)
        )
    view = TreeView.open(run.spec.suite, trees, snapshot)
    new = {run.spec.suite.to_runner_path(path) for path in files}

    def is_new(id_: str) -> bool:
        return view.find_file(id_) in new

    if baseline is None and any(case.is_red and not is_new(case.id) for case in suite_run.cases):
        baseline = await run_tests(run, ports, base)
    context = NewTestContext(describe_test_goal(run), load_project_view(run, ports, snapshot), is_new)
    if reason := find_test_problem(baseline.cases if baseline else (), suite_run.cases, context):
        ports.note(test_refused=reason)
        return ParsedAnswer(None, reason)
    target_cases = [case for case in suite_run.cases if case.is_red and context.is_new(case.id)]
    targets = tuple(case.id for case in target_cases)
    updated_run = run.model_copy(update={"spec": run.spec.model_copy(update={"base": snapshot})})
    reproduction = determine_targets(
        updated_run,
        ports,
        suite_run,
        tests=tuple(sorted(files)),
        snapshot=snapshot,
        is_selected=build_selector(targets, ""),
    )
    confidence = parse_confidence(answer.text)
    changes = {
        "report": restrict_to_targets(ports, updated_run, suite_run.report, target_cases),
        "sure": confidence.level,
        "sure_why": confidence.reason,
    }
    return ParsedAnswer(reproduction.model_copy(update=changes | {"command": command}))


def _build_messages(run: RunState, ports: Ports, goal: str) -> tuple[Message, ...]:
    base, trees = run.spec.base, ports.trees
    read, paths = partial(trees.read, base), trees.list_files(base)
    view = TreeView(run.spec.suite, paths, read)
    question = RankingQuestion(
        cases=(), goal=describe_test_goal(run), tests=(), is_test=is_test_path, budget=MAX_CODE_LENGTH
    )
    context = rank(
        question, sorted(view.snapshot_paths), view.read, walk_search(sorted(view.snapshot_paths), view.read)
    )
    files = outline(Files(paths, read, partial(trees.get_size, base)), is_test_path, MAX_OUTLINE_LENGTH)
    example = find_example(filter(find_test_language, paths), read)
    code = context.with_paths(view.snapshot_paths)
    writer_context = WriterContext(files, code, read, example, run.spec.asks.session_calls)
    return build_test_question(run, goal, writer_context, ANSWER, ports.note)

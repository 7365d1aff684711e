"""Run the tests on the unchanged code: which fail, why, and which of them an edit can make pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from posixpath import join
from typing import Any

from redstart.core.change import Snapshot
from redstart.core.chat import AnswerFault
from redstart.core.frozen import clip
from redstart.core.learning import Signature
from redstart.core.report import FIRST, Case, CaseList, Ids, OutcomeCounts, Report, ReproductionResult
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.run import RunState
from redstart.core.set_aside import SetAsidePolicy
from redstart.core.shell import PINNED, Environment, ExitCause, Variation
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.foreign import find_foreign_cases, group_by_reason
from redstart.toolkit.languages.registry import find_runner_language, is_code, is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.prompts.ask_model import AnswerOutcome
from redstart.toolkit.retrieval.rank import BUDGET
from redstart.toolkit.suites.detection.target_language import find_foreign_language
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, classify, classify_run
from redstart.toolkit.suites.problems.project import ProjectView, create_project_view
from redstart.toolkit.suites.problems.reasons import format_message, summarize_problems
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.selection import Chooses, build_selector
from redstart.toolkit.suites.spectrum import watch
from redstart.toolkit.suites.suite_directory import TreeView

NONE_CHOSEN = "no test matches the ids or the expression that you gave. What to do: run redstart fix without them."
CHOSEN_GREEN = "the tests that you chose pass already"
CHOOSE_ALL = build_selector((), "")


async def run_tests(
    run: RunState, ports: Ports, snapshot: Snapshot, ids: Sequence[str] = (), variation: Variation = PINNED
) -> SuiteRun:
    suite = run.spec.suite
    paths = [suite.to_runner_path(path) for path in ports.trees.list_files(snapshot)]
    # The modules that a new program will import do not exist yet.
    is_new = run.spec.task.makes_program
    language = None if is_new else find_runner_language(suite.runner)
    own_packages = (
        language.list_own_packages([path for path in paths if not path.startswith("../")]) if language else ()
    )
    sign_case = _sign_with(run, ports, snapshot)
    return await run_suite(
        ports.sandbox,
        ports.blobs,
        run.spec,
        snapshot,
        sign=sign_case,
        ids=ids,
        packages=() if ids else own_packages,
        variation=variation,
    )


def _sign_with(run: RunState, ports: Ports, snapshot: Snapshot) -> Callable[[Case], Signature]:
    view = TreeView.open(run.spec.suite, ports.trees, snapshot)
    return partial(sign, is_source=view.build_source_filter(find_protection))


def determine_targets(
    run: RunState,
    ports: Ports,
    suite_run: SuiteRun,
    tests: tuple[str, ...] = (),
    snapshot: Snapshot | None = None,
    is_selected: Chooses = CHOOSE_ALL,
) -> ReproductionResult:
    """Determine the targets among the tests that `is_selected` accepts; `tests` are the paths of tests written for the
    run."""
    failing = [case for case in suite_run.cases if case.is_red]
    selected = [case for case in failing if is_selected(case.id)]
    # Newly written tests may import what does not exist yet.
    foreign = (
        {} if tests else find_foreign_cases(run, ports, selected, partial(load_project_view, run, ports, run.spec.base))
    )
    problems = {} if tests else {**_find_environment_problems(run, ports, suite_run), **foreign}
    targets = [case for case in selected if case.id not in problems]
    problem_types = {SuiteProblem.none: Problem.none, SuiteProblem.no_tests: Problem.no_tests}
    problem = problem_types.get(suite_run.problem, Problem.environment)
    if reason := suite_run.misplaced or ("" if failing else suite_run.unexplained):
        return ReproductionResult(report=suite_run.report, trouble=Problem.environment, remedy=clip(reason, 600))
    if not problem and not targets:
        problem = Problem.environment if selected else Problem.already_green
        if not any(is_selected(case.id) for case in suite_run.cases):
            return ReproductionResult(report=suite_run.report, trouble=Problem.no_tests, remedy=NONE_CHOSEN)
        if failing and not selected:
            return ReproductionResult(report=suite_run.report, trouble=problem, remedy=CHOSEN_GREEN)
    environment_problems, first_problem = summarize_problems(problems)
    remedy = first_problem.remedy if first_problem else ""
    return ReproductionResult(
        report=restrict_to_targets(ports, run, suite_run.report, targets) if problems and targets else suite_run.report,
        targets=Ids.from_ids(case.id for case in targets),
        targets_full=ports.blobs.put("\n".join(case.id for case in targets).encode()),
        language=find_foreign_language(
            run.spec.suite, ports.trees, snapshot or run.spec.base, [case.id for case in targets]
        ),
        trouble=problem,
        remedy=format_message(suite_run.report.fault, environment_problems, remedy) if problem else remedy,
        grounds=environment_problems,
        set_aside=group_by_reason(foreign, ports.blobs) if targets else (),
        tests=tests,
        snapshot=snapshot,
    )


def _find_environment_problems(run: RunState, ports: Ports, suite_run: SuiteRun) -> dict[str, EnvironmentProblem]:
    """Find the failing tests that no edit can make pass, each with its reason. A run without results has the empty
    key."""
    project = load_project_view(run, ports, run.spec.base)
    if suite_run.problem:
        output = ports.blobs.get(suite_run.report.output).decode("utf-8", "replace")
        run_problem = classify_run(suite_run.problem, output, suite_run.report.cause, project)
        return {"": run_problem} if run_problem else {}
    if run.spec.set_aside_policy is SetAsidePolicy.all_red:
        return {}
    classified = ((case.id, classify(case, project)) for case in suite_run.cases if case.is_red)
    return {id_: problem for id_, problem in classified if problem is not None}


def load_project_view(run: RunState, ports: Ports, snapshot: Snapshot) -> ProjectView:
    suite = run.spec.suite
    environment = Environment.model_validate_json(ports.blobs.get(suite.environment))
    view = TreeView.open(suite, ports.trees, snapshot)
    root = join(environment.mount, suite.folder).rstrip("/")
    return create_project_view(view.snapshot_paths, view.read, root, environment.python)


def restrict_to_targets(ports: Ports, run: RunState, report: Report, targets: Sequence[Case]) -> Report:
    """Restrict the report for later steps to the tests that an edit can make pass; the first gives the signature."""
    briefs = tuple(case.shorten() for case in targets[:FIRST])
    return report.model_copy(update={"cases": briefs, "signature": _sign_with(run, ports, run.spec.base)(targets[0])})


def report_no_tests(
    run: RunState, outcome: AnswerOutcome[Any], problem: Problem = Problem.no_tests
) -> ReproductionResult:
    empty_report = Report(
        runner=run.spec.suite.runner, counts=OutcomeCounts(), cause=ExitCause.ok, exit_code=0, fault=outcome.fault
    )
    is_over = outcome.answer.fault is AnswerFault.budget
    return ReproductionResult(report=empty_report, trouble=problem, over_budget=is_over, remedy=outcome.fault)


async def with_traced_lines(run: RunState, ports: Ports, reproduction: ReproductionResult) -> ReproductionResult:
    """Trace the lines that the targets run, if there is more code than can be shown in full."""
    base, trees = run.spec.base, ports.trees
    code = (path for path in trees.list_files(base) if is_code(path) and not is_test_path(path))
    if reproduction.trouble or sum(trees.get_size(base, path) or 0 for path in code) <= BUDGET:
        return reproduction
    cases = CaseList.model_validate_json(ports.blobs.get(reproduction.report.full)).cases
    target_ids = ports.blobs.get(reproduction.targets_full).decode().splitlines()
    ports.announce("tracing")
    spectrum = await watch(ports.sandbox, ports.blobs, run.spec, target_ids, cases)
    return (
        reproduction.model_copy(update={"spectrum": ports.blobs.put(spectrum.model_dump_json().encode())})
        if spectrum
        else reproduction
    )

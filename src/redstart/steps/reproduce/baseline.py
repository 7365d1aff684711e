"""Run the tests on the unchanged code: which fail, why, and which of them an edit can make pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from posixpath import join
from typing import Any

from redstart.core.change import Snapshot
from redstart.core.chat import AnswerFault
from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import FIRST, Case, CaseList, Ids, OutcomeCounts, Report, ReproductionResult
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.run import RunState
from redstart.core.shell import PINNED, Environment, ExitCause, Variation
from redstart.ports.bundle import Ports
from redstart.toolkit.languages.registry import is_code, is_test_path, language_of_runner
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts.asking import AnswerOutcome
from redstart.toolkit.retrieval.rank import BUDGET
from redstart.toolkit.suites.detection.target_language import foreign_language
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.problems.ground import EnvironmentProblem, classify, classify_run
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.project import ProjectView, project_of
from redstart.toolkit.suites.problems.reasons import reasons, sentence
from redstart.toolkit.suites.select import Chooses, chooser
from redstart.toolkit.suites.spectrum import watch
from redstart.toolkit.suites.view import TreeView

NONE_CHOSEN = "no test matches the ids or the expression that you gave. What to do: run redstart fix without them."
CHOSEN_GREEN = "the tests that you chose pass already"
EVERY = chooser((), "")


async def run_tests(
    run: RunState, ports: Ports, snapshot: Snapshot, ids: Sequence[str] = (), vary: Variation = PINNED
) -> SuiteRun:
    suite = run.spec.suite
    shown = [suite.as_shown(path) for path in ports.trees.files(snapshot)]
    # The modules that a new program will import do not exist yet.
    is_new = run.spec.task.makes_program
    language = None if is_new else language_of_runner(suite.runner)
    own = language.own_packages([path for path in shown if not path.startswith("../")]) if language else ()
    signed = _sign_with(run, ports, snapshot)
    return await run_suite(
        ports.sandbox, ports.blobs, run.spec, snapshot, sign=signed, ids=ids, packages=() if ids else own, vary=vary
    )


def _sign_with(run: RunState, ports: Ports, snapshot: Snapshot) -> Callable[[Case], Signature]:
    view = TreeView(run.spec.suite, ports.trees.files(snapshot), partial(ports.trees.read, snapshot))
    return partial(sign, is_source=view.source(protected))


def reproduced(
    run: RunState,
    ports: Ports,
    done: SuiteRun,
    tests: tuple[str, ...] = (),
    snapshot: Snapshot | None = None,
    chosen: Chooses = EVERY,
) -> ReproductionResult:
    """Determine the targets among the tests that `is_selected` accepts; `tests` are the paths of tests written for the
    run."""
    red = [case for case in done.cases if case.red]
    # Newly written tests may import what does not exist yet.
    lacking = {} if tests else _lacking(run, ports, done)
    asked = [case for case in red if chosen(case.id)]
    wanted = [case for case in asked if case.id not in lacking]
    known = {SuiteProblem.none: Problem.none, SuiteProblem.no_tests: Problem.no_tests}
    trouble = known.get(done.trouble, Problem.environment)
    if why := done.misplaced or ("" if red else done.unexplained):
        return ReproductionResult(report=done.report, trouble=Problem.environment, remedy=clip(why, 600))
    if not trouble and not wanted:
        trouble = Problem.environment if asked else Problem.already_green
        if not any(chosen(case.id) for case in done.cases):
            return ReproductionResult(report=done.report, trouble=Problem.no_tests, remedy=NONE_CHOSEN)
        if red and not asked:
            return ReproductionResult(report=done.report, trouble=trouble, remedy=CHOSEN_GREEN)
    grounds, first = reasons(lacking)
    remedy = first.remedy if first else ""
    return ReproductionResult(
        report=about_targets(ports, run, done.report, wanted) if lacking and wanted else done.report,
        targets=Ids.of(case.id for case in wanted),
        targets_full=ports.blobs.put("\n".join(case.id for case in wanted).encode()),
        language=foreign_language(run.spec.suite, ports.trees, snapshot or run.spec.base, [case.id for case in wanted]),
        trouble=trouble,
        remedy=sentence(done.report.fault, grounds, remedy) if trouble else remedy,
        grounds=grounds,
        tests=tests,
        snapshot=snapshot,
    )


def _lacking(run: RunState, ports: Ports, done: SuiteRun) -> dict[str, EnvironmentProblem]:
    """Find the failing tests that no edit can make pass, each with its reason. A run without results has the empty
    key."""
    project = project_on(run, ports, run.spec.base)
    if done.trouble:
        output = ports.blobs.get(done.report.output).decode("utf-8", "replace")
        whole = classify_run(done.trouble, output, done.report.cause, project)
        return {"": whole} if whole else {}
    found = ((case.id, classify(case, project)) for case in done.cases if case.red)
    return {id_: ground for id_, ground in found if ground is not None}


def project_on(run: RunState, ports: Ports, snapshot: Snapshot) -> ProjectView:
    suite = run.spec.suite
    environment = Environment.model_validate_json(ports.blobs.get(suite.environment))
    view = TreeView(suite, ports.trees.files(snapshot), partial(ports.trees.read, snapshot))
    root = join(environment.mount, suite.folder).rstrip("/")
    return project_of(view.kept, view.read, root, environment.python)


def about_targets(ports: Ports, run: RunState, report: Report, wanted: Sequence[Case]) -> Report:
    """Restrict the report for later steps to the tests that an edit can make pass; the first gives the signature."""
    shown = tuple(case.brief() for case in wanted[:FIRST])
    return report.model_copy(update={"cases": shown, "signature": _sign_with(run, ports, run.spec.base)(wanted[0])})


def no_tests(run: RunState, heard: AnswerOutcome[Any], trouble: Problem = Problem.no_tests) -> ReproductionResult:
    nothing = Report(
        runner=run.spec.suite.runner, counts=OutcomeCounts(), cause=ExitCause.ok, exit_code=0, fault=heard.fault
    )
    is_over = heard.answer.fault is AnswerFault.budget
    return ReproductionResult(report=nothing, trouble=trouble, over_budget=is_over, remedy=heard.fault)


async def with_traced_lines(run: RunState, ports: Ports, found: ReproductionResult) -> ReproductionResult:
    """Trace the lines that the targets run, if there is more code than can be shown in full."""
    base, trees = run.spec.base, ports.trees
    code = (path for path in trees.files(base) if is_code(path) and not is_test_path(path))
    if found.trouble or sum(trees.size(base, path) or 0 for path in code) <= BUDGET:
        return found
    cases = CaseList.model_validate_json(ports.blobs.get(found.report.full)).cases
    red = ports.blobs.get(found.targets_full).decode().splitlines()
    ports.announce("tracing")
    seen = await watch(ports.sandbox, ports.blobs, run.spec, red, cases)
    return found.model_copy(update={"spectrum": ports.blobs.put(seen.model_dump_json().encode())}) if seen else found

"""A whole run in memory: a repo of two files, a computed suite instead of a real one, a scripted model.

Git, the patching, the checks and the verdict are real, so a run on the rig does everything that a run does except
start a process of the target.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from redstart.core.chat import Ask
from redstart.core.events import Event
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import Attempt, Effort, Level, Limits, Mode, RunSpec, RunState, Spend, Step, Suite
from redstart.core.run_preferences import QuestionOptions
from redstart.core.set_aside import SetAsidePolicy
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.core.tasks import TASKS, CandidatePlan, FixTask
from redstart.engines.step_driver import Adapters
from redstart.flow.modes import MODES
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.memory.port import LessonStore, Memory
from redstart.ports.model.budget import BudgetedModel, RunLedger
from redstart.ports.model.port import Model, TimedLedger
from redstart.ports.model.secret_mask import mask
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.journal import Journal
from redstart.ports.store.port.runs import Store
from redstart.ports.world.system import NumberedWorld
from redstart.testing.model import ScriptedModel
from redstart.testing.sandbox import FakeSandbox
from redstart.toolkit.learning.lesson_selector import LessonSelector
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs, create_memory_database

CODE = "calc.py"
TESTS = "test_calc.py"
BUGGY = "def double(number):\n    return number + number + 1\n"
TEST_TEXT = """from calc import double


def test_double():
    assert double(2) == 4


def test_zero():
    assert True
"""
RED = f"{TESTS}::test_double"
GREEN = f"{TESTS}::test_zero"

WRITER = "scripted:model"
"""The name of the scripted model."""

DAWN = datetime(2030, 1, 1, tzinfo=UTC)

CARD = '{"summary": "off by one", "root_cause": "one too many", "fix": "no extra one", "debug_steps": []}'


def block(search: str, text: str, path: str = CODE, why: str = "one too many") -> str:
    """Build a model's answer with one edit."""
    return f"WHY: {why}\n\n{path}\n<<<<<<< SEARCH\n{search}\n=======\n{text}\n>>>>>>> REPLACE\n"


RIGHT = block("    return number + number + 1", "    return number + number")
WRONG = block("    return number + number + 1", "    return number + number + 2")
WORSE = block("    return number + number + 1", "    return number * 3")
MISFIT = block("    return a line that is not there", "    return number")
BROKEN = block("    return number + number + 1", "    return (number")
SMELLY = block("    return number + number + 1", "    return number + nunber")
TAMPER = block("    assert double(2) == 4", "    assert True", TESTS)
GARBAGE = "I am sorry, I would rather talk about the weather."


def create_computed_suite(trees: GitTrees) -> Callable[[Execution], Completed]:
    """Compute the suite without running it: read the return value of `double` from the code and the expected value from
    the (possibly altered) test, and write the JUnit XML that pytest would."""

    def run(execution: Execution) -> Completed:
        code = (trees.read(execution.snapshot, CODE) or b"").decode()
        match = re.search(r"return (.+)", code)
        value = {"number + number": 4, "number + number + 1": 5, "number + number + 2": 6}.get(
            match[1] if match else "", 7
        )
        if "pytest" not in " ".join(execution.argv):
            return create_neutral_result(value)
        tests = (trees.read(execution.snapshot, TESTS) or b"").decode()
        failure = _build_failure(value, tests)
        cases = f'<testcase classname="test_calc" name="test_double" file="{TESTS}" time="0.01">{failure}</testcase>'
        selected_ids = [argument for argument in execution.argv if "::" in argument]
        if not selected_ids or GREEN in selected_ids:
            failure_xml = '<failure message="AssertionError"/>' if GREEN in altered_ids(tests) else ""
            cases += (
                f'<testcase classname="test_calc" name="test_zero" file="{TESTS}" time="0.01">{failure_xml}</testcase>'
            )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        exit_code = 1 if failure else 0
        cause = ExitCause.failed if failure else ExitCause.ok
        return Completed(exit_code=exit_code, cause=cause, output="computed\n", files={"junit.xml": xml}, wall=0.01)

    return run


def altered_ids(tests: str) -> set[str]:
    """Return the IDs of tests whose text differs from the rig's; comments do not count."""

    def parse_functions(text: str) -> dict[str, str]:
        for name, value in re.findall(r"^(_value_\d+) = \((.*)\)$", text, re.MULTILINE):
            text = text.replace(name, value)
        lines = "\n".join(line for line in text.splitlines() if line != "#")
        return {name: " ".join(body.split()) for name, body in re.findall(r"def (test_\w+)\(\):\n((?: .*\n?)+)", lines)}

    original_functions = parse_functions(TEST_TEXT)
    return {
        f"{TESTS}::{name}"
        for name, body in parse_functions(tests).items()
        if original_functions.get(name, body) != body
    }


def create_neutral_result(value: int) -> Completed:
    """Build the result of a neutral rerun, in which tests are called without a runner."""
    outcome = "passed" if value == 4 else "failed"
    results = {RED: {"outcome": outcome, "type": "" if value == 4 else "AssertionError", "line": 5}}
    files = {"state.json": json.dumps({"results": results})}
    return Completed(exit_code=0, cause=ExitCause.ok, output="", files=files, wall=0.01)


def _build_failure(value: int, tests: str) -> str:
    """Build the failure of `test_double`; empty if it passes."""
    match = re.search(r"assert (not \()?double\(\w+\) == (\d+)", tests)
    negated, expected = (bool(match[1]), int(match[2])) if match else (False, 4)
    message = f"assert {value} == {expected}\n +  where {value} = double(2)"
    if 'raise AssertionError("~")\n    assert double' in tests:
        message = "AssertionError: ~"
    elif (value == expected) is not negated:
        return ""
    source_lines = "def test_double():\n>       assert double(2) == 4"
    detail = f"{source_lines}\nE       {message.splitlines()[0]}\n\n{TESTS}:5: AssertionError"
    return f"<failure message={quoteattr(message)}>{detail}</failure>"


class Kept(NamedTuple):
    """The stores of a rig's runs."""

    store: Store
    journal: Journal
    memory: Memory
    shelf: LessonStore


Keep = Callable[[], Kept]
"""Creates empty stores."""


def open_stores(database: Database) -> Kept:
    memory = SqlMemory(database, HashingEmbedder())
    return Kept(SqlStore(database, time.time), SqlJournal(database), memory, SqlLessonStore(database))


def in_memory() -> Kept:
    return open_stores(create_memory_database())


@dataclass
class Rig:
    """Everything a driver needs, and what it leaves behind."""

    adapters: Adapters
    trees: GitTrees
    sandbox: FakeSandbox
    keep: Keep
    events: list[Event] = field(default_factory=list[Event])

    def twin(self) -> Rig:
        """Create another rig on the same snapshots with empty stores."""
        return _build_rig(self.trees, self.adapters.blobs, self.keep)

    def with_model(self, answers: Sequence[str | Exception] | Callable[[Ask], str]) -> ScriptedModel:
        """Give the driver this model, and return it so that a test can see its questions."""
        model = ScriptedModel(answers, name=WRITER)
        self.adapters = replace(self.adapters, model=model)
        return model

    def with_suite(self, answer: Callable[[Execution], Completed]) -> None:
        """Give the driver another suite to run."""
        self.sandbox = FakeSandbox(answer)
        self.adapters = replace(self.adapters, sandbox=self.sandbox)

    async def begin(
        self,
        *,
        limits: Limits | None = None,
        verify: Level = Level.quick,
        effort: Effort = Effort.lean,
        mode: Mode = Mode.fix,
        goal: str = "",
        asks: QuestionOptions | None = None,
        reflect: ReflectionPolicy = ReflectionPolicy.never,
        set_aside: SetAsidePolicy = SetAsidePolicy.never,
        candidates: CandidatePlan | None = None,
    ) -> str:
        """Create a new run on the buggy repo; return its ID."""
        files: dict[str, bytes | None] = {CODE: BUGGY.encode(), TESTS: TEST_TEXT.encode()}
        base = self.trees.write(self.trees.create_empty(), files if mode is Mode.fix else {"README.md": b"goal\n"})
        environment = Environment(mount="/repo", python="/usr/bin/python3")
        suite = Suite(runner="pytest", environment=self.adapters.blobs.put(environment.model_dump_json().encode()))
        spec = RunSpec(
            task=FixTask(set_aside=set_aside, candidates=candidates) if mode is Mode.fix else TASKS[mode](),
            goal=goal,
            base=base,
            suite=suite,
            repo="rig",
            effort=effort,
            limits=limits or Limits(),
            verify=verify,
            asks=asks or QuestionOptions(),
            reflect=reflect,
        )
        state = RunState(
            run_id=self.adapters.world.generate_id(), spec=spec, base=base, now=Attempt(entry=MODES[mode][0])
        )
        await self.adapters.store.create(state, folder="/rig", created=DAWN)
        return state.run_id

    async def list_steps(self, run_id: str) -> list[tuple[int, Step]]:
        return [(row.attempt, row.step) for row in await self.adapters.store.list_steps(run_id)]


def make_rig(folder: Path, keep: Keep = in_memory) -> Rig:
    """Create a rig with snapshots in `folder` and runs in the stores of `keep`; the caller closes its `trees`."""
    blobs = MemoryBlobs()
    return _build_rig(GitTrees(folder, blobs), blobs, keep)


def _build_rig(trees: GitTrees, blobs: Blobs, keep: Keep) -> Rig:
    stores, sandbox, world = keep(), FakeSandbox(create_computed_suite(trees)), NumberedWorld("rig")
    events: list[Event] = []

    def create_budgeted_model(model: Model, ledger: TimedLedger) -> Model:
        return BudgetedModel(model, ledger, lambda tier: f"openai:{tier.value}-unpriced")

    def create_ledger(limits: Limits, spend: Spend) -> RunLedger:
        return RunLedger(limits, spend, world.monotonic)

    adapters = Adapters(
        store=stores.store,
        journal=stores.journal,
        blobs=blobs,
        trees=trees,
        memory=stores.memory,
        lessons=LessonSelector(stores.shelf, world.now, lambda text: mask(text) != text),
        world=world,
        model=None,
        writer=WRITER,
        sandbox=sandbox,
        installer=None,
        ledger=create_ledger,
        budgeted=create_budgeted_model,
        listen=events.append,
    )
    return Rig(adapters, trees, sandbox, keep, events)

"""Which runs are warm, which are fresh, and what a session does when its warm sandbox dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from redstart.core.change import Snapshot
from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.port import session_of
from redstart.ports.sandbox.warm.zygote import MOST_STARTS, WarmSession
from redstart.testing.sandbox import FakeSandbox

ENVIRONMENT = Environment(mount="/repo", python="/usr/bin/python3")
LIMITS = SandboxLimits()


def pytest_run(*words: str, **fields: Any) -> Execution:
    snapshot = Snapshot(tree="t", base="t", pack="")
    fields = {"environment": ENVIRONMENT, "limits": LIMITS, **fields}
    return Execution(argv=("/usr/bin/python3", "-m", "pytest", *words), snapshot=snapshot, **fields)


def ended(output: str, code: int = 0) -> Completed:
    return Completed(exit_code=code, cause=ExitCause.failed if code else ExitCause.ok, output=output)


class Kept:
    """A warm sandbox that ends as scripted, in turn: with a result, or by dying."""

    def __init__(self, ends: list[Completed | None]) -> None:
        self.ends = ends
        self.open = 0
        self.starts = 0

    @contextlib.asynccontextmanager
    async def start(self, _: Execution) -> AsyncGenerator[Kept]:
        self.starts += 1
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    async def run(self, _: Execution) -> Completed:
        end = self.ends.pop(0) if self.ends else ended("warm")
        if end is None:
            raise SandboxDied
        return end


class Session:
    """A session over a warm sandbox and a fresh one that names itself in its output."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.fresh = FakeSandbox(lambda _: ended("fresh"))
        self.session = WarmSession(self.fresh, kept.start, ENVIRONMENT, LIMITS)
        self.open_before = 0
        """The number of warm sandboxes that were open before the session was closed."""

    def __call__(self, *executions: Execution) -> list[str]:
        async def all_of_them() -> list[str]:
            said = [(await self.session.run(each)).output for each in executions]
            self.open_before = self.kept.open
            await self.session.close()
            return said

        return asyncio.run(all_of_them())


def test_runs_share_what_was_started_once() -> None:
    session = Session(Kept([]))
    assert session(pytest_run("a"), pytest_run("b", variables={"TZ": "CET"}), pytest_run("c")) == ["warm"] * 3
    assert (session.kept.starts, session.session.warm_runs, session.fresh.executions) == (1, 3, [])


@pytest.mark.parametrize(
    "other",
    [
        pytest_run(environment=ENVIRONMENT.model_copy(update={"home": "/other"})),
        pytest_run(limits=SandboxLimits(wall=1)),
        pytest_run().model_copy(update={"argv": ("/usr/bin/python3", "-m", "unittest")}),
        pytest_run().model_copy(update={"argv": ("/other/python3", "-m", "pytest")}),
    ],
)
def test_what_does_not_fit_is_fresh_and_starts_nothing(other: Execution) -> None:
    session = Session(Kept([]))
    assert session(other) == ["fresh"]
    assert session.kept.starts == 0


def test_services_are_offered_in_a_fresh_one_alone() -> None:
    environment = ENVIRONMENT.model_copy(update={"services": ("localhost:5432",)})
    kept = Kept([])
    session = WarmSession(FakeSandbox(lambda _: ended("fresh")), kept.start, environment, LIMITS)
    assert asyncio.run(session.run(pytest_run(environment=environment))).output == "fresh"
    assert kept.starts == 0


def test_another_seed_of_hashes_cannot_be_had_by_a_fork() -> None:
    session = Session(Kept([]))
    seeded = pytest_run(variables={"PYTHONHASHSEED": "1"})
    assert session(pytest_run(), seeded, pytest_run()) == ["warm", "fresh", "warm"]


def test_a_run_in_which_it_died_is_repeated_and_the_next_begins_anew() -> None:
    session = Session(Kept([ended("warm"), None, ended("warm again")]))
    assert session(pytest_run("a"), pytest_run("b"), pytest_run("c")) == ["warm", "fresh", "warm again"]
    assert session.fresh.executions == [pytest_run("b")]
    assert (session.kept.starts, session.open_before, session.kept.open) == (2, 1, 0)


def test_what_dies_again_and_again_is_given_up() -> None:
    session = Session(Kept([None] * 10))
    assert session(*[pytest_run()] * 6) == ["fresh"] * 6
    assert (session.kept.starts, session.open_before) == (MOST_STARTS, 0)


def test_what_cannot_be_started_is_tried_once() -> None:
    tries: list[Execution] = []

    @contextlib.asynccontextmanager
    async def start(execution: Execution) -> AsyncGenerator[Kept]:
        tries.append(execution)
        raise SandboxUnavailable
        yield Kept([])

    session = WarmSession(FakeSandbox(lambda _: ended("fresh")), start, ENVIRONMENT, LIMITS)
    assert [asyncio.run(session.run(pytest_run())).output for _ in range(3)] == ["fresh"] * 3
    assert len(tries) == 1


def test_a_folder_that_cannot_be_renamed_there_is_renamed_in_a_fresh_one() -> None:
    said = "OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'"
    in_a_file = ended("F", 1).model_copy(update={"files": {"junit.xml": said}})
    session = Session(Kept([ended(said, 1), in_a_file, ended(said, 0), ended("F", 1)]))
    assert session(*[pytest_run()] * 4) == ["fresh", "fresh", said, "F"]


def test_a_sandbox_without_a_warm_form_is_its_own_session() -> None:
    async def run() -> Completed:
        async with session_of(FakeSandbox(lambda _: ended("fresh")), ENVIRONMENT, LIMITS) as session:
            return await session.run(pytest_run())

    assert asyncio.run(run()).output == "fresh"

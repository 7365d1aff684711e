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
from redstart.ports.sandbox.port import open_sandbox_session
from redstart.ports.sandbox.warm.zygote import MOST_STARTS, WarmSession
from redstart.testing.sandbox import FakeSandbox

ENVIRONMENT = Environment(mount="/repo", python="/usr/bin/python3")
LIMITS = SandboxLimits()


def pytest_run(*words: str, **fields: Any) -> Execution:
    snapshot = Snapshot(tree="t", base="t", pack="")
    fields = {"environment": ENVIRONMENT, "limits": LIMITS, **fields}
    return Execution(argv=("/usr/bin/python3", "-m", "pytest", *words), snapshot=snapshot, **fields)


def create_completed(output: str, code: int = 0) -> Completed:
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
        end = self.ends.pop(0) if self.ends else create_completed("warm")
        if end is None:
            raise SandboxDied
        return end


class Session:
    """A session over a warm sandbox and a fresh one that names itself in its output."""

    def __init__(self, warm_pool: Kept) -> None:
        self.kept = warm_pool
        self.fresh = FakeSandbox(lambda _: create_completed("fresh"))
        self.session = WarmSession(self.fresh, warm_pool.start, ENVIRONMENT, LIMITS)
        self.open_before = 0
        """The number of warm sandboxes that were open before the session was closed."""

    def __call__(self, *executions: Execution) -> list[str]:
        async def run_all() -> list[str]:
            outputs = [(await self.session.run(execution)).output for execution in executions]
            self.open_before = self.kept.open
            await self.session.close()
            return outputs

        return asyncio.run(run_all())


def test_runs_share_one_warm_start() -> None:
    session = Session(Kept([]))
    assert session(pytest_run("a"), pytest_run("b", variables={"TZ": "CET"}), pytest_run("c")) == ["warm"] * 3
    assert (session.kept.starts, session.session.warm_runs, session.fresh.executions) == (1, 3, [])


@pytest.mark.parametrize(
    "execution",
    [
        pytest_run(environment=ENVIRONMENT.model_copy(update={"home": "/other"})),
        pytest_run(limits=SandboxLimits(wall=1)),
        pytest_run().model_copy(update={"argv": ("/usr/bin/python3", "-m", "unittest")}),
        pytest_run().model_copy(update={"argv": ("/other/python3", "-m", "pytest")}),
    ],
)
def test_unsuitable_execution_runs_fresh_and_starts_nothing(execution: Execution) -> None:
    session = Session(Kept([]))
    assert session(execution) == ["fresh"]
    assert session.kept.starts == 0


async def test_execution_with_services_runs_fresh() -> None:
    environment = ENVIRONMENT.model_copy(update={"services": ("localhost:5432",)})
    warm_pool = Kept([])
    session = WarmSession(FakeSandbox(lambda _: create_completed("fresh")), warm_pool.start, environment, LIMITS)
    assert (await session.run(pytest_run(environment=environment))).output == "fresh"
    assert warm_pool.starts == 0


def test_execution_with_a_hash_seed_runs_fresh() -> None:
    session = Session(Kept([]))
    seeded = pytest_run(variables={"PYTHONHASHSEED": "1"})
    assert session(pytest_run(), seeded, pytest_run()) == ["warm", "fresh", "warm"]


def test_run_that_kills_the_warm_process_is_repeated_fresh() -> None:
    session = Session(Kept([create_completed("warm"), None, create_completed("warm again")]))
    assert session(pytest_run("a"), pytest_run("b"), pytest_run("c")) == ["warm", "fresh", "warm again"]
    assert session.fresh.executions == [pytest_run("b")]
    assert (session.kept.starts, session.open_before, session.kept.open) == (2, 1, 0)


def test_repeatedly_dying_warm_process_is_given_up() -> None:
    session = Session(Kept([None] * 10))
    assert session(*[pytest_run()] * 6) == ["fresh"] * 6
    assert (session.kept.starts, session.open_before) == (MOST_STARTS, 0)


def test_failed_warm_start_is_tried_only_once() -> None:
    tries: list[Execution] = []

    @contextlib.asynccontextmanager
    async def start(execution: Execution) -> AsyncGenerator[Kept]:
        tries.append(execution)
        raise SandboxUnavailable
        yield Kept([])

    session = WarmSession(FakeSandbox(lambda _: create_completed("fresh")), start, ENVIRONMENT, LIMITS)
    assert [asyncio.run(session.run(pytest_run())).output for _ in range(3)] == ["fresh"] * 3
    assert len(tries) == 1


def test_run_that_fails_to_rename_a_directory_is_repeated_fresh() -> None:
    message = "OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'"
    in_a_file = create_completed("F", 1).model_copy(update={"files": {"junit.xml": message}})
    session = Session(
        Kept([create_completed(message, 1), in_a_file, create_completed(message, 0), create_completed("F", 1)])
    )
    assert session(*[pytest_run()] * 4) == ["fresh", "fresh", message, "F"]


async def test_sandbox_without_a_warm_form_is_its_own_session() -> None:
    async def run() -> Completed:
        async with open_sandbox_session(
            FakeSandbox(lambda _: create_completed("fresh")), ENVIRONMENT, LIMITS
        ) as session:
            return await session.run(pytest_run())

    assert (await run()).output == "fresh"

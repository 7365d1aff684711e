"""Rate limits of one process, and limits shared by all processes with one database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.ports.model.routes import LocalRateLimits
from redstart.ports.sql.engine import Database
from redstart.ports.sql.rates import SqlRates
from redstart.testing.contracts.rates import NOW, RatesContract

TAKER = """
import sys
from pathlib import Path
from redstart.ports.sql.engine import Database
from redstart.ports.sql.rates import SqlRates
where, count = sys.argv[1], int(sys.argv[2])
with Database.open(where if "://" in where else Path(where)) as database:
    rates = SqlRates(database)
    print("ready", flush=True)
    sys.stdin.readline()
    waits = [rates.take("model", 10, 600, 1_900_000_000.0) for _ in range(count)]
    print(*waits)
"""


class TestOwnRates(RatesContract):
    @pytest.fixture
    def rates(self) -> LocalRateLimits:
        return LocalRateLimits()


class TestSqlRates(RatesContract):
    @pytest.fixture
    def rates(self, database: Database) -> SqlRates:
        return SqlRates(database)


def test_tenants_have_separate_rate_limits(database: Database) -> None:
    SqlRates(database).take("model", 60, 60, NOW)
    assert SqlRates(database.for_tenant("other")).take("model", 60, 60, NOW) == 0.0


def test_clock_that_was_hours_ahead_causes_no_long_wait(database: Database) -> None:
    rates = SqlRates(database)
    rates.take("model", 60, 60, NOW + 36_000)
    assert rates.take("model", 6, 60, NOW) == pytest.approx(6.0)
    assert rates.take("model", 0, 60, NOW + 6) == pytest.approx(0.0, abs=1e-6), "the limit refills again"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_processes_share_one_rate_limit(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    new: Callable[[], str] | None = request.getfixturevalue("new_postgres") if kind == "postgres" else None
    location = new() if new else str(tmp_path / "store.db")
    command = [sys.executable, "-W", "error", "-c", TAKER, location, "40"]
    takers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for taker in takers:
        assert taker.stdout
        assert taker.stdout.readline() == "ready\n"
    for taker in takers:
        assert taker.stdin
        taker.stdin.write("\n")
        taker.stdin.flush()
    waits = sorted(float(wait) for taker in takers for wait in taker.communicate(timeout=300)[0].split())
    assert len(waits) == 80
    # Ten tokens refill per second: 60 calls of ten tokens are available at once, then one per second.
    assert waits == pytest.approx([0.0] * 60 + [float(second) for second in range(1, 21)])

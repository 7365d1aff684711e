"""No query of a tenant, in any tenant's name, returns another's data: cards, lessons, uses and edges."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable

import pytest

from redstart.core.context import Chunk, Context
from redstart.core.learning import CardState, NewMemories, Signature
from redstart.core.lesson import LessonDraw, LessonDraws, LessonScope, Situation
from redstart.core.report import ReproductionResult
from redstart.core.run import Attempt, Result, Status, Step
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.engine import Database
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import card, commit, failure, lesson, report, signature, spec
from redstart.toolkit.learning.advisor import LessonSelector

TENANTS = tuple(f"t{number:02}" for number in range(12))
ODD = ("", "%", "t0_", "T01", "t01 ", "t01'--", "' OR 1=1 --", "t01\x1f", "home", "t0%")
"""Names of tenants without data that resemble the names of others."""
RUNS = 3
REPOS = ("shop", "bank", "%", "", "sh_p")
OWNER = re.compile(r"of-(t\d\d)-")
"""Everything that a tenant stores contains its name."""

Question = Callable[["Eyes", random.Random], Awaitable[object]]


def bug(tenant: str, number: int) -> Signature:
    """Build a signature of the same kind for every tenant, so that each could match every tenant's queries."""
    return signature(frame=f"shop/of-{tenant}-{number}.py:Cart.total")


def met(tenant: str, number: int) -> Signature:
    """Build the signature that the fixing run began with."""
    return signature(exception=f"of-{tenant}-{number}-Error")


class Eyes:
    """Everything that a tenant can query from memory."""

    def __init__(self, database: Database, tenant: str, clock: Clock) -> None:
        mine = database.of(tenant)
        self.tenant = tenant
        self.store = SqlStore(mine, clock)
        self.memory, self.shelf = SqlMemory(mine, HashingEmbedder()), SqlLessonStore(mine)
        self.cards, self.edges = SqlCards(mine), SqlEdges(mine)
        self.advisor = LessonSelector(self.shelf, clock, lambda text: False)

    async def fill(self, number: int) -> None:
        name = f"of-{self.tenant}-{number}"
        of = bug(self.tenant, number)
        red = report([f"{name}.py::test"], signature=met(self.tenant, number))
        shown = Context(chunks=(Chunk(path=f"{name}.py", start=1, end=2, score=1.0, source="frame"),))
        tried = Attempt(entry=Step.reproduce, reproduce=ReproductionResult(report=red), retrieve=shown)
        asked = spec(tenant=self.tenant, repo=REPOS[number % 2])
        now, fence = await begin(self.store, f"run-{name}", spec=asked, now=tried)
        left = NewMemories(
            card=card(f"card-{name}", of, signature=of, summary=name),
            failure=failure(f"failure-{name}", of, signature=of),
            lesson=lesson(
                f"lesson-{name}", of, tenant=self.tenant, scope=(LessonScope.repo, LessonScope.tenant)[number % 2]
            ),
        )
        done = commit(now, Step.remember, remembered=left)
        await self.store.commit(done, fence)
        coins = LessonDraws(coins=(LessonDraw(lesson=f"lesson-{name}", shown=True, probability=0.5),))
        ended = commit(done.after, Step.decide, status=Status.finished, result=Result.verified, taught=coins)
        await self.store.commit(ended, fence)


def anybody(rng: random.Random, *also: str) -> str:
    return rng.choice((*TENANTS, *ODD, *also * 4))


def name(eyes: Eyes, rng: random.Random) -> str:
    """Pick the name of an entry that some tenant stores, or that nobody does."""
    return f"of-{anybody(rng, eyes.tenant)}-{rng.randrange(RUNS + 1)}"


def some_bug(eyes: Eyes, rng: random.Random) -> Signature:
    return bug(anybody(rng, eyes.tenant), rng.randrange(RUNS))


def situation(eyes: Eyes, rng: random.Random) -> Situation:
    family = rng.choice((some_bug(eyes, rng).family, ""))
    whose = anybody(rng, eyes.tenant)
    return Situation(tenant=whose, repo=rng.choice(REPOS), family=family, text="A total fails with KeyError")


async def uses(eyes: Eyes, rng: random.Random) -> object:
    """Count uses by the lesson's name, since a use itself contains no owner."""
    names = [f"lesson-{name(eyes, rng)}" for _ in range(4)]
    return {use: len(seen) for use, seen in (await eyes.shelf.uses(names)).items() if seen}


async def changes(eyes: Eyes, rng: random.Random) -> object:
    """Try to change a card and a lesson, which works only for the tenant's own."""
    whose = name(eyes, rng)
    done = await eyes.cards.put(f"card-{whose}", CardState.shown)
    kept = await eyes.shelf.put(lesson(f"lesson-{whose}", tenant=rng.choice((eyes.tenant, whose[3:6]))))
    return whose if done or kept else None


ASKED: dict[str, Question] = {
    "recall": lambda eyes, rng: eyes.memory.recall(
        some_bug(eyes, rng), tenant=anybody(rng, eyes.tenant), repo=rng.choice(REPOS), limit=50
    ),
    "lessons": lambda eyes, rng: eyes.shelf.lessons(),
    "offered": lambda eyes, rng: eyes.advisor.offered(situation(eyes, rng)),
    "cards": lambda eyes, rng: eyes.cards.cards(repo=rng.choice((None, *REPOS)), limit=500),
    "card": lambda eyes, rng: eyes.cards.card(f"card-{name(eyes, rng)}"),
    "edges": lambda eyes, rng: eyes.edges.edges(repo=rng.choice((None, *REPOS))),
    "fixes": lambda eyes, rng: eyes.edges.fixes_of(met(anybody(rng, eyes.tenant), rng.randrange(RUNS)).key),
    "bug types": lambda eyes, rng: eyes.edges.bug_types(repo=rng.choice((None, *REPOS))),
    "files": lambda eyes, rng: eyes.edges.files_in_failures(repo=rng.choice((None, *REPOS))),
    "uses": uses,
    "changes": changes,
}


@pytest.mark.parametrize("asked", [400, pytest.param(10_000, marks=pytest.mark.soak)])
def test_nothing_of_another_tenant_comes_back(database: Database, asked: int) -> None:
    rng, clock = random.Random(7), Clock()
    everybody = {tenant: Eyes(database, tenant, clock) for tenant in (*TENANTS, *ODD)}

    async def scenario() -> dict[str, int]:
        for number in range(RUNS):
            for tenant in TENANTS:
                clock.time += 60
                await everybody[tenant].fill(number)
        found: dict[str, int] = dict.fromkeys(ASKED, 0)
        for number in range(asked):
            eyes, (what, question) = everybody[anybody(rng)], rng.choice([*ASKED.items()])
            owners = set(OWNER.findall(repr(await question(eyes, rng))))
            assert owners <= {eyes.tenant}, (number, what, eyes.tenant)
            found[what] += bool(owners)
        return found

    found = asyncio.run(scenario())
    assert all(found.values()), f"a query never found even the tenant's own data: {found}"

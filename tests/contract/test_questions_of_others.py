"""No query of a tenant, in any tenant's name, returns another's data: cards, lessons, uses and edges."""

from __future__ import annotations

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
from redstart.testing.states import commit, make_card, make_failure, make_lesson, make_signature, make_spec, report
from redstart.toolkit.learning.lesson_selector import LessonSelector

TENANTS = tuple(f"t{number:02}" for number in range(12))
ODD = ("", "%", "t0_", "T01", "t01 ", "t01'--", "' OR 1=1 --", "t01\x1f", "home", "t0%")
"""Names of tenants without data that resemble the names of others."""
RUNS = 3
REPOS = ("shop", "bank", "%", "", "sh_p")
OWNER = re.compile(r"of-(t\d\d)-")
"""Everything that a tenant stores contains its name."""

Question = Callable[["Eyes", random.Random], Awaitable[object]]


def make_bug_signature(tenant: str, number: int) -> Signature:
    """Build a signature of the same kind for every tenant, so that each could match every tenant's queries."""
    return make_signature(frame=f"shop/of-{tenant}-{number}.py:Cart.total")


def make_first_signature(tenant: str, number: int) -> Signature:
    """Build the signature that the fixing run began with."""
    return make_signature(exception=f"of-{tenant}-{number}-Error")


class Eyes:
    """Everything that a tenant can query from memory."""

    def __init__(self, database: Database, tenant: str, clock: Clock) -> None:
        own_database = database.for_tenant(tenant)
        self.tenant = tenant
        self.store = SqlStore(own_database, clock)
        self.memory, self.shelf = SqlMemory(own_database, HashingEmbedder()), SqlLessonStore(own_database)
        self.cards, self.edges = SqlCards(own_database), SqlEdges(own_database)
        self.advisor = LessonSelector(self.shelf, clock, lambda text: False)

    async def fill(self, number: int) -> None:
        name = f"of-{self.tenant}-{number}"
        bug_signature = make_bug_signature(self.tenant, number)
        failing_report = report([f"{name}.py::test"], signature=make_first_signature(self.tenant, number))
        context = Context(chunks=(Chunk(path=f"{name}.py", start=1, end=2, score=1.0, source="frame"),))
        attempt = Attempt(entry=Step.reproduce, reproduce=ReproductionResult(report=failing_report), retrieve=context)
        run_spec = make_spec(tenant=self.tenant, repo=REPOS[number % 2])
        state, fence = await begin(self.store, f"run-{name}", spec=run_spec, now=attempt)
        memories = NewMemories(
            card=make_card(f"card-{name}", bug_signature, signature=bug_signature, summary=name),
            failure=make_failure(f"failure-{name}", bug_signature, signature=bug_signature),
            lesson=make_lesson(
                f"lesson-{name}",
                bug_signature,
                tenant=self.tenant,
                scope=(LessonScope.repo, LessonScope.tenant)[number % 2],
            ),
        )
        memory_commit = commit(state, Step.remember, remembered=memories)
        await self.store.commit(memory_commit, fence)
        coins = LessonDraws(coins=(LessonDraw(lesson=f"lesson-{name}", shown=True, probability=0.5),))
        final_commit = commit(
            memory_commit.after, Step.decide, status=Status.finished, result=Result.verified, taught=coins
        )
        await self.store.commit(final_commit, fence)


def pick_tenant(rng: random.Random, *preferred: str) -> str:
    return rng.choice((*TENANTS, *ODD, *preferred * 4))


def name(pick_name: Eyes, rng: random.Random) -> str:
    """Pick the name of an entry that some tenant stores, or that nobody does."""
    return f"of-{pick_tenant(rng, pick_name.tenant)}-{rng.randrange(RUNS + 1)}"


def pick_bug(view: Eyes, rng: random.Random) -> Signature:
    return make_bug_signature(pick_tenant(rng, view.tenant), rng.randrange(RUNS))


def pick_situation(view: Eyes, rng: random.Random) -> Situation:
    family = rng.choice((pick_bug(view, rng).family, ""))
    tenant = pick_tenant(rng, view.tenant)
    return Situation(tenant=tenant, repo=rng.choice(REPOS), family=family, text="A total fails with KeyError")


async def count_uses(view: Eyes, rng: random.Random) -> object:
    """Count uses by the lesson's name, since a use itself contains no owner."""
    names = [f"lesson-{name(view, rng)}" for _ in range(4)]
    return {use: len(lesson_uses) for use, lesson_uses in (await view.shelf.list_uses(names)).items() if lesson_uses}


async def change_entries(view: Eyes, rng: random.Random) -> object:
    """Try to change a card and a lesson, which works only for the tenant's own."""
    entry_name = name(view, rng)
    card_changed = await view.cards.put(f"card-{entry_name}", CardState.shown)
    lesson_changed = await view.shelf.put(
        make_lesson(f"lesson-{entry_name}", tenant=rng.choice((view.tenant, entry_name[3:6])))
    )
    return entry_name if card_changed or lesson_changed else None


ASKED: dict[str, Question] = {
    "recall": lambda view, rng: view.memory.recall(
        pick_bug(view, rng), tenant=pick_tenant(rng, view.tenant), repo=rng.choice(REPOS), limit=50
    ),
    "lessons": lambda view, rng: view.shelf.list_lessons(),
    "offered": lambda view, rng: view.advisor.offer_lessons(pick_situation(view, rng)),
    "cards": lambda view, rng: view.cards.list_cards(repo=rng.choice((None, *REPOS)), limit=500),
    "card": lambda view, rng: view.cards.get_card(f"card-{name(view, rng)}"),
    "edges": lambda view, rng: view.edges.list_edges(repo=rng.choice((None, *REPOS))),
    "fixes": lambda view, rng: view.edges.list_fixes(
        make_first_signature(pick_tenant(rng, view.tenant), rng.randrange(RUNS)).key
    ),
    "bug types": lambda view, rng: view.edges.count_bug_types(repo=rng.choice((None, *REPOS))),
    "files": lambda view, rng: view.edges.list_files_in_failures(repo=rng.choice((None, *REPOS))),
    "uses": count_uses,
    "changes": change_entries,
}


@pytest.mark.parametrize("asked", [400, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_no_query_returns_data_of_another_tenant(database: Database, asked: int) -> None:
    rng, clock = random.Random(7), Clock()
    everybody = {tenant: Eyes(database, tenant, clock) for tenant in (*TENANTS, *ODD)}

    async def scenario() -> dict[str, int]:
        for number in range(RUNS):
            for tenant in TENANTS:
                clock.time += 60
                await everybody[tenant].fill(number)
        counts: dict[str, int] = dict.fromkeys(ASKED, 0)
        for number in range(asked):
            view, (label, question) = everybody[pick_tenant(rng)], rng.choice([*ASKED.items()])
            owners = set(OWNER.findall(repr(await question(view, rng))))
            assert owners <= {view.tenant}, (number, label, view.tenant)
            counts[label] += bool(owners)
        return counts

    totals = await scenario()
    assert all(totals.values()), f"a query never found even the tenant's own data: {totals}"

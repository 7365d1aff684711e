"""The only place that names adapters."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from redstart.app.images import wanted
from redstart.app.settings import Settings, api_key, require_model
from redstart.core.chat import Tier
from redstart.core.events import Event
from redstart.core.run import Limits, Spend
from redstart.engines.drive import Adapters, StepLedger
from redstart.engines.port import Engine
from redstart.ports.model.budget import Budgeted, RunLedger
from redstart.ports.model.port import Ledger, Model
from redstart.ports.model.tiers import Tiers
from redstart.ports.sandbox.cgroups import restart_in_own_group
from redstart.ports.sandbox.choose import choose, lacks_of
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.ports.world.port import World
from redstart.ports.world.system import SystemWorld
from redstart.toolkit.repo.trees import GitTrees


@dataclass(frozen=True, slots=True)
class House:
    """Everything wired. `adapters` has no model and no sandbox until they are asked for."""

    settings: Settings
    adapters: Adapters
    trees: GitTrees

    @property
    def moment(self) -> datetime:
        """Now, as a run is dated."""
        return datetime.fromtimestamp(self.adapters.world.now(), UTC)

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """What the sandbox could not get on this machine, each in a few words."""
        return tuple(lack.short for lack in lacks_of(self.adapters.sandbox))

    def with_sandbox(self, *, unsafe: bool = False) -> House:
        """Raises `SandboxUnavailable` with the remedy."""
        scratch = self.settings.home / "scratch"
        scratch.mkdir(exist_ok=True)
        asked = wanted(self.settings.sandbox, os.environ)
        sandbox = choose(self.trees, scratch, unsafe=unsafe, wanted=asked)
        return replace(self, adapters=replace(self.adapters, sandbox=sandbox))

    def with_model(self, model: Model | None = None) -> House:
        """With this model, or with those of the settings. Raises `ConfigError` where none can be had."""
        return replace(self, adapters=replace(self.adapters, model=model or connect(self.settings)))


def leave_shared_group() -> None:
    """Where the system's manager gives this user a control group to divide: starts the program anew in one, once.

    To be called before anything else is done; it returns where there is nothing to gain.
    """
    restart_in_own_group()


@contextmanager
def open_house(
    settings: Settings, *, listen: Callable[[Event], None] | None = None, world: World | None = None
) -> Generator[House]:
    """Opens the store; closes everything at the end."""
    world = world or SystemWorld()
    home = settings.home
    database = Database.open(home / "redstart.db")
    try:
        blobs = DirectoryBlobs(home / "blobs")
        trees = GitTrees(home / "snapshots", blobs)
        try:
            yield House(settings, _adapters(settings, database, blobs, trees, world, listen), trees)
        finally:
            trees.close()
    finally:
        database.close()


def _adapters(
    settings: Settings,
    database: Database,
    blobs: DirectoryBlobs,
    trees: GitTrees,
    world: World,
    listen: Callable[[Event], None] | None,
) -> Adapters:
    names = {Tier.fast: settings.models.fast, Tier.strong: settings.models.strong}

    def budgeted(model: Model, ledger: Ledger) -> Model:
        return Budgeted(model, ledger, names.__getitem__)

    def ledger(limits: Limits, spent: Spend) -> StepLedger:
        return RunLedger(limits, spent)

    return Adapters(
        store=SqlStore(database, world.now),
        journal=SqlJournal(database),
        blobs=blobs,
        trees=trees,
        memory=SqlMemory(database),
        world=world,
        model=None,
        writer=settings.models.strong,
        sandbox=None,
        ledger=ledger,
        budgeted=budgeted,
        listen=listen or _nobody,
    )


def _nobody(event: Event) -> None:
    """Listens to nothing."""
    del event


def connect(settings: Settings) -> Model:
    """Both tiers. Raises `ConfigError` where a model or its key is missing."""
    from redstart.ports.model.providers import connect as provider  # noqa: PLC0415  (takes a second to load)

    require_model(settings)
    models = settings.models
    reach = partial(provider, base_url=models.base_url, deadline=models.deadline)
    made = {name: reach(name, api_key=api_key(name, os.environ)) for name in {models.fast, models.strong}}
    return Tiers({Tier.fast: made[models.fast], Tier.strong: made[models.strong]})


def engine_called(name: str) -> Engine:
    """`langgraph` or `inline`."""
    if name == "inline":
        from redstart.engines.inline import inline  # noqa: PLC0415

        return inline
    from redstart.engines.langgraph import langgraph  # noqa: PLC0415  (takes half a second to load)

    return langgraph

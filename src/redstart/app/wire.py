"""The only place that names adapters."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypedDict

from redstart.app.choices import DriveFlags, with_models
from redstart.app.images import wanted
from redstart.app.installs import IndexInstaller
from redstart.app.model_routes import has_endpoint, model_address, model_route, short_model_name
from redstart.app.objects import refuse_object_name
from redstart.app.plugins import make_model, proven_sandbox
from redstart.app.settings import Settings, require_model
from redstart.app.settings.store import DATABASE, folder_of
from redstart.core.chat import Ask, Tier
from redstart.core.course import StallLimits
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.graph import Graph, MirrorCounts
from redstart.core.run import Limits, Spend
from redstart.core.run_options import RunOptions
from redstart.core.visible import visible
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import Adapters, StepLedger
from redstart.engines.port import DEFAULT, Engine
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.memory.port import Embedder, LessonStore
from redstart.ports.model.budget import BudgetedModel, RunLedger
from redstart.ports.model.endpoints import PLUGIN, ModelAddress
from redstart.ports.model.gateway import Gateway, RetryPolicy
from redstart.ports.model.lanes import ModelRoute, RateLimits, RouteOptions
from redstart.ports.model.mask import MaskedModel, mask, secrets_of
from redstart.ports.model.port import Model, Profile, TimedLedger
from redstart.ports.model.tiers import profile_of
from redstart.ports.sandbox.cgroups import restart_in_own_group
from redstart.ports.sandbox.choose import choose, lacks_of
from redstart.ports.sandbox.port import Sandbox, SandboxFactory
from redstart.ports.sql.blobs import SqlBlobs
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlFailures, SqlMemory
from redstart.ports.sql.rates import SqlRates
from redstart.ports.sql.store import SqlStore
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.ports.store.port.blobs import SweptBlobs
from redstart.ports.trials.port import Trials
from redstart.ports.world.port import World
from redstart.ports.world.system import SystemWorld
from redstart.toolkit.learning.advisor import LessonSelector
from redstart.toolkit.repo.trees import GitTrees

STEPS_ASKED = ("plan", "patch", "reproduce", "audit", "reflect", "remember")
"""The steps that ask a model."""


@dataclass(frozen=True, slots=True)
class AppContext:
    """All wired parts of the application. `adapters` has no model and no sandbox until they are added."""

    settings: Settings
    adapters: Adapters
    trees: GitTrees
    rates: RateLimits | None = None
    """The rate limits of models, if they are shared with others."""
    flags: DriveFlags | None = None
    """The flags that control how new runs are driven; stored with the runs."""

    @property
    def moment(self) -> datetime:
        """The current time, in the form that dates a run."""
        return datetime.fromtimestamp(self.adapters.world.now(), UTC)

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """The features that the sandbox lacks on this machine, each in a few words."""
        return tuple(lack.short for lack in lacks_of(self.adapters.sandbox))

    def with_sandbox(self, own: Sandbox | SandboxFactory | None = None, *, unsafe: bool = False) -> AppContext:
        """Add this sandbox, or the one of the settings. Raises `SandboxUnavailable` with the remedy."""
        scratch = self.settings.home / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        backend = self.settings.sandbox.backend
        if own is None:
            refuse_object_name(backend, "sandbox")
            if self.settings.sandbox.is_plugin:
                own = proven_sandbox(backend, self.trees, scratch, unsafe=unsafe)
            else:
                own = choose(self.trees, scratch, unsafe=unsafe, wanted=wanted(self.settings.sandbox, os.environ))
        sandbox = own(self.trees, scratch) if callable(own) else own
        return replace(self, adapters=replace(self.adapters, sandbox=sandbox))

    def with_options_of(self, options: RunOptions | None) -> AppContext:
        """Use the models that a run of another machine stored; unchanged if the run stored none."""
        return self.with_settings(with_models(self.settings, options.models, elsewhere=True)) if options else self

    def with_settings(self, settings: Settings) -> AppContext:
        """Use these settings and their models."""
        return replace(self, settings=settings, adapters=replace(self.adapters, **_model_parts(settings)))

    def with_model(self, model: Model | None = None) -> AppContext:
        """Add this model, or those of the settings. Raises `ConfigError` if one is not available."""
        if model is None and self.settings.memory.embedder:
            embedding_address(self.settings)
        return replace(self, adapters=replace(self.adapters, model=model or connect(self.settings, rates=self.rates)))


def leave_shared_group() -> None:
    """Restart the program once in its own control group, if the system's manager lets this user divide one.

    Call this before anything else. It returns if a restart brings no advantage.
    """
    restart_in_own_group()


@contextmanager
def open_house(
    settings: Settings,
    *,
    listen: Callable[[Event], None] | None = None,
    world: World | None = None,
    opened: Database | None = None,
) -> Generator[AppContext]:
    """Open the store for the settings' tenant, and close everything at the end.

    A caller that opens many contexts passes a database that is already open; it stays open.
    """
    world = world or SystemWorld()
    database = (opened or open_database(settings)).of(settings.tenant)
    try:
        blobs = blobs_of(settings, database)
        trees = GitTrees(folder_of(settings.home, settings.tenant) / "snapshots", blobs)
        try:
            yield AppContext(
                settings, _adapters(settings, database, blobs, trees, world, listen), trees, rates_of(database)
            )
        finally:
            trees.close()
    finally:
        if opened is None:
            database.close()


def open_database(settings: Settings) -> Database:
    """Open the database of the settings. Raises `StoreError` if it cannot be used."""
    return Database.open(settings.store.url or settings.home / DATABASE)


def blobs_of(settings: Settings, database: Database) -> SweptBlobs:
    if settings.store.keeps_blobs:
        return SqlBlobs(database)
    return DirectoryBlobs(folder_of(settings.home, settings.tenant) / "blobs")


def rates_of(database: Database) -> RateLimits | None:
    """Open the rate limits shared by all users of this database and tenant; None for a file, which is not shared."""
    return SqlRates(database) if database.is_postgres else None


def trials_of(database: Database) -> Trials:
    return SqlTrials(database, SystemWorld().now)


def cards_of(database: Database) -> SqlCards:
    return SqlCards(database)


def failures_of(database: Database) -> SqlFailures:
    return SqlFailures(database)


def shelf_of(database: Database) -> SqlLessonStore:
    return SqlLessonStore(database)


def advisor_of(shelf: LessonStore, now: Callable[[], float]) -> LessonSelector:
    return LessonSelector(shelf, now, lambda text: mask(text) != text)


def edges_of(database: Database) -> SqlEdges:
    return SqlEdges(database)


def mirror_to(graph: Graph, url: str, database: str, environ: Mapping[str, str]) -> MirrorCounts:
    """Copy the graph to a server that speaks Bolt. See `mirror`. Raises `ConfigError` without the extra `neo4j`."""
    try:
        from redstart.ports.memory.neo4j import Neo4jServer, mirror  # noqa: PLC0415  (of the extra `neo4j`)
    except ModuleNotFoundError as error:
        raise _lacks_neo4j() from error
    user, password = environ.get("NEO4J_USERNAME", ""), environ.get("NEO4J_PASSWORD", "")
    return mirror(graph, Neo4jServer(url, user, password, database))


def reach_graph(url: str, environ: Mapping[str, str], seconds: float) -> None:
    """Connect to a graph server once within this time. Raises `ConfigError` without the extra `neo4j`."""
    try:
        from redstart.ports.memory.neo4j import Neo4jServer, reach  # noqa: PLC0415  (of the extra `neo4j`)
    except ModuleNotFoundError as error:
        raise _lacks_neo4j() from error
    reach(Neo4jServer(url, environ.get("NEO4J_USERNAME", ""), environ.get("NEO4J_PASSWORD", "")), seconds)


def _lacks_neo4j() -> ConfigError:
    return ConfigError("the package for Neo4j is not installed", remedy="pip install 'redstart[neo4j]'")


def _adapters(
    settings: Settings,
    database: Database,
    blobs: SweptBlobs,
    trees: GitTrees,
    world: World,
    listen: Callable[[Event], None] | None,
) -> Adapters:
    def ledger(limits: Limits, spent: Spend) -> StepLedger:
        return RunLedger(limits, spent, world.monotonic)

    return Adapters(
        store=SqlStore(database, world.now),
        journal=SqlJournal(database),
        blobs=blobs,
        trees=trees,
        memory=SqlMemory(database, embedder_of(settings), goals=HashingEmbedder()),
        lessons=advisor_of(SqlLessonStore(database), world.now),
        world=world,
        model=None,
        sandbox=None,
        installer=IndexInstaller(settings.home, os.environ),
        ledger=ledger,
        listen=listen or _nobody,
        **_model_parts(settings),
    )


class _ModelParts(TypedDict):
    writer: str
    asked_model: Callable[[Ask], str]
    budgeted: Callable[[Model, TimedLedger], Model]


def _model_parts(settings: Settings) -> _ModelParts:
    """Make the parts of the adapters that depend on the chosen models."""
    names = {Tier.fast: settings.models.fast, Tier.strong: settings.models.strong}

    def budgeted(model: Model, ledger: TimedLedger) -> Model:
        # The gateway reserves budget for each of its calls; a model with one call per question is wrapped.
        return model.under(ledger) if isinstance(model, Gateway) else BudgetedModel(model, ledger, names.__getitem__)

    roster = settings.models.roster
    return _ModelParts(
        writer=roster.usual("patch", Tier.strong),
        asked_model=lambda ask: short_model_name(roster.chosen(ask)[0]),
        budgeted=budgeted,
    )


def embedder_of(settings: Settings) -> Embedder:
    """Make the embedder of the settings. No call is made yet; the first call reports an error in the settings."""
    memory, name = settings.memory, settings.memory.embedder
    if not name:
        return HashingEmbedder(near=memory.near)
    from redstart.ports.model.embedding import DEADLINE, NEAR, ApiEmbedder, EmbeddingOptions  # noqa: PLC0415

    manner = EmbeddingOptions(
        deadline=settings.models.option(name).deadline or DEADLINE,
        near=NEAR if memory.near is None else memory.near,
        dimensions=memory.dimensions,
        rates=profile_of(name, settings.models.profiles).rates,
        secrets=secrets_of(os.environ),
    )
    return ApiEmbedder(partial(embedding_address, settings), name, manner)


def embedding_address(settings: Settings) -> ModelAddress:
    """Find the address of the settings' embedder. Raises `ConfigError` if the settings do not give a usable one."""
    from redstart.ports.model.embedding import refuse_unfit  # noqa: PLC0415

    return refuse_unfit(model_address(settings, settings.memory.embedder, os.environ))


def _nobody(event: Event) -> None:
    """Ignore the event."""
    del event


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


def check_models(settings: Settings, *, keys: bool = True) -> None:
    """Raise `ConfigError` if a model has no usable name or, with `keys`, no key. No model is asked or loaded."""
    require_model(settings)
    for name in settings.models.roster.names:
        if has_endpoint(name):
            (model_address if keys else model_route)(settings, name, os.environ)


def connect(
    settings: Settings, tell: Callable[[str], None] = _say, rates: RateLimits | None = None, own: Model | None = None
) -> Model:
    """Put every model of the settings behind one gateway, or return the recorded or manual model that replaces all.

    `tell` shows messages to a person who answers by hand, `rates` are shared rate limits, and the last argument is the
    caller's model, which the settings name. Raises `ConfigError` if a model or its key is missing.
    """
    if own is None:
        require_model(settings)
    models = settings.models
    kind, _, rest = models.strong.partition(":")
    if kind in ("manual", "replay"):
        return _masked(_by_hand(settings, rest, tell) if kind == "manual" else _recorded(rest))
    lanes = {name: _lane(settings, name, own) for name in models.roster.names}

    def choose(ask: Ask) -> list[ModelRoute]:
        return [lanes[name] for name in models.roster.chosen(ask)]

    return Gateway(choose, RetryPolicy(tries=models.tries, patience=models.patience), rates=rates)


def profile(settings: Settings, step: str = "patch") -> Profile:
    """Load the profile of the model that this step asks first; for a recording, that of the recorded model.

    Raises `ConfigError` if a recording cannot be read.
    """
    tier = Tier.strong if step in ("patch", "reproduce") else Tier.fast
    name = settings.models.roster.usual(step, tier)
    if name.startswith("replay:"):
        from redstart.ports.model.replay import Cassette  # noqa: PLC0415

        name = Cassette.load(Path(name.removeprefix("replay:"))).model
    return profile_of(name, settings.models.profiles)


def asking(settings: Settings) -> QuestionOptions:
    """Make the options for questions: the smallest context window of all models, the writer's form of edits."""
    writer = profile(settings)
    window = min(profile(settings, step).context for step in STEPS_ASKED)
    shaped = writer.shapes and writer.json_edits
    roster, options = settings.models.roster, settings.models.options
    own = {name: StallLimits(warning=option.stall_warning, end=option.stall) for name, option in options.items()}
    return QuestionOptions(
        window=window,
        edits=writer.edits,
        shaped=shaped,
        brief=writer.brief,
        stronger=roster.stronger("patch", Tier.strong),
        stalls={name: stall for name, stall in own.items() if stall != StallLimits()},
    )


def _lane(settings: Settings, name: str, own: Model | None) -> ModelRoute:
    models, asked = settings.models, settings.models.option(name)
    known = profile_of(name, models.profiles)
    model = _model_called(settings, name, asked.deadline or models.deadline, known) if own is None else own
    options = RouteOptions(
        asked.temperature, asked.max_tokens, asked.at_once, asked.tokens_a_minute, asked.requests_a_minute
    )
    return ModelRoute(name, _masked(model), profile=known, options=options)


def _model_called(settings: Settings, name: str, deadline: float, known: Profile) -> Model:
    if name.startswith("command:"):
        from redstart.ports.model.command import Command  # noqa: PLC0415

        return Command(name.removeprefix("command:"), name=name, deadline=deadline)
    if name.startswith(f"{PLUGIN}:"):
        return make_model(name, deadline)
    from redstart.ports.model.providers import provider_at  # noqa: PLC0415  (takes a second to load)

    return provider_at(model_address(settings, name, os.environ), deadline=deadline, profile=known)


def _masked(model: Model) -> Model:
    """Wrap a model so that no question contains a secret of this machine."""
    return MaskedModel(model, secrets_of(os.environ))


def _by_hand(settings: Settings, folder: str, tell: Callable[[str], None]) -> Model:
    from redstart.ports.model.manual import ManualModel  # noqa: PLC0415

    return ManualModel(Path(folder) if folder else settings.home / "by-hand", tell, name=settings.models.strong)


def _recorded(file: str) -> Model:
    from redstart.ports.model.replay import Cassette, ReplayModel  # noqa: PLC0415

    return ReplayModel(Cassette.load(Path(file)))


def engine_called(name: str = DEFAULT) -> Engine:
    """Load the engine `langgraph` or `inline`."""
    if name == "inline":
        from redstart.engines.inline import inline  # noqa: PLC0415

        return inline
    from redstart.engines.langgraph import langgraph  # noqa: PLC0415  (takes half a second to load)

    return langgraph

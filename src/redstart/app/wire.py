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

from redstart.app.images import build_sandbox_choice
from redstart.app.installs import IndexInstaller
from redstart.app.model_routes import find_model_address, find_model_route, has_endpoint, shorten_model_name
from redstart.app.objects import refuse_object_name
from redstart.app.plugins import make_model, make_proven_sandbox
from redstart.app.run_choices import DriveFlags, with_models
from redstart.app.settings import Settings, require_model
from redstart.app.settings.store import DATABASE, find_tenant_folder
from redstart.core.chat import Ask, Tier
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.graph import Graph, MirrorCounts
from redstart.core.progress import StallLimits
from redstart.core.run import Limits, Spend
from redstart.core.run_options import RunOptions
from redstart.core.run_preferences import QuestionOptions
from redstart.core.safe_text import escape_hidden
from redstart.engines.port import DEFAULT, Engine
from redstart.engines.step_driver import Adapters, StepLedger
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.memory.port import Embedder, LessonStore
from redstart.ports.model.budget import BudgetedModel, RunLedger
from redstart.ports.model.endpoints import PLUGIN, ModelAddress
from redstart.ports.model.gateway import Gateway, RetryPolicy
from redstart.ports.model.port import Model, Profile, TimedLedger
from redstart.ports.model.routes import ModelRoute, RateLimits, RouteOptions
from redstart.ports.model.secret_mask import MaskedModel, find_secrets, mask
from redstart.ports.model.tiers import get_profile
from redstart.ports.sandbox.cgroups import restart_in_own_group
from redstart.ports.sandbox.port import Sandbox, SandboxFactory, is_isolating
from redstart.ports.sandbox.selection import choose, list_lack_texts
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
from redstart.toolkit.learning.lesson_selector import LessonSelector
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites.plugin_bytecode import BytecodeSandbox

MODEL_STEPS = ("plan", "patch", "reproduce", "audit", "reflect", "remember")
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
        return tuple(lack.short_description for lack in list_lack_texts(self.adapters.sandbox))

    def with_sandbox(
        self, custom_sandbox: Sandbox | SandboxFactory | None = None, *, unsafe: bool = False
    ) -> AppContext:
        """Add this sandbox, or the one of the settings. Raises `SandboxUnavailable` with the remedy."""
        scratch = self.settings.home / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        backend = self.settings.sandbox.backend
        if custom_sandbox is None:
            refuse_object_name(backend, "sandbox")
            if self.settings.sandbox.is_plugin:
                custom_sandbox = make_proven_sandbox(backend, self.trees, scratch, unsafe=unsafe)
            else:
                chosen = choose(
                    self.trees, scratch, unsafe=unsafe, choice=build_sandbox_choice(self.settings.sandbox, os.environ)
                )
                custom_sandbox = self._keep_bytecode(chosen) if is_isolating(chosen) else chosen
        sandbox = custom_sandbox(self.trees, scratch) if callable(custom_sandbox) else custom_sandbox
        return replace(self, adapters=replace(self.adapters, sandbox=sandbox))

    def _keep_bytecode(self, sandbox: Sandbox) -> Sandbox:
        folder = find_tenant_folder(self.settings.home, self.settings.tenant) / "plugin-bytecode"
        return BytecodeSandbox(sandbox, folder, self.trees.create_empty)

    def with_run_options(self, options: RunOptions | None) -> AppContext:
        """Use the models that a run of another machine stored; unchanged if the run stored none."""
        return (
            self.with_settings(with_models(self.settings, options.models, on_other_machine=True)) if options else self
        )

    def with_settings(self, settings: Settings) -> AppContext:
        """Use these settings and their models."""
        return replace(self, settings=settings, adapters=replace(self.adapters, **_create_model_parts(settings)))

    def with_model(self, model: Model | None = None) -> AppContext:
        """Add this model, or those of the settings. Raises `ConfigError` if one is not available."""
        if model is None and self.settings.memory.embedder:
            find_embedding_address(self.settings)
        return replace(self, adapters=replace(self.adapters, model=model or connect(self.settings, rates=self.rates)))


def leave_shared_group() -> None:
    """Restart the program once in its own control group, if the system's manager lets this user divide one.

    Call this before anything else. It returns if a restart brings no advantage.
    """
    restart_in_own_group()


@contextmanager
def open_app(
    settings: Settings,
    *,
    listen: Callable[[Event], None] | None = None,
    world: World | None = None,
    root_database: Database | None = None,
) -> Generator[AppContext]:
    """Open the store for the settings' tenant, and close everything at the end.

    A caller that opens many contexts passes a database that is already open; it stays open.
    """
    world = world or SystemWorld()
    database = (root_database or open_database(settings)).for_tenant(settings.tenant)
    try:
        blobs = create_blob_store(settings, database)
        trees = GitTrees(find_tenant_folder(settings.home, settings.tenant) / "snapshots", blobs)
        try:
            yield AppContext(
                settings,
                _create_adapters(settings, database, blobs, trees, world, listen),
                trees,
                create_rate_limits(database),
            )
        finally:
            trees.close()
    finally:
        if root_database is None:
            database.close()


def open_database(settings: Settings) -> Database:
    """Open the database of the settings. Raises `StoreError` if it cannot be used."""
    return Database.open(settings.store.url or settings.home / DATABASE)


def create_blob_store(settings: Settings, database: Database) -> SweptBlobs:
    if settings.store.keeps_blobs:
        return SqlBlobs(database)
    return DirectoryBlobs(find_tenant_folder(settings.home, settings.tenant) / "blobs")


def create_rate_limits(database: Database) -> RateLimits | None:
    """Open the rate limits shared by all users of this database and tenant; None for a file, which is not shared."""
    return SqlRates(database) if database.is_postgres else None


def create_trial_store(database: Database) -> Trials:
    return SqlTrials(database, SystemWorld().now)


def create_card_store(database: Database) -> SqlCards:
    return SqlCards(database)


def create_failure_store(database: Database) -> SqlFailures:
    return SqlFailures(database)


def create_lesson_store(database: Database) -> SqlLessonStore:
    return SqlLessonStore(database)


def create_lesson_selector(store: LessonStore, now: Callable[[], float]) -> LessonSelector:
    return LessonSelector(store, now, lambda text: mask(text) != text)


def create_edge_store(database: Database) -> SqlEdges:
    return SqlEdges(database)


def mirror_to(graph: Graph, url: str, database: str, environ: Mapping[str, str]) -> MirrorCounts:
    """Copy the graph to a server that speaks Bolt. See `mirror`. Raises `ConfigError` without the extra `neo4j`."""
    try:
        from redstart.ports.memory.neo4j import Neo4jServer, mirror  # noqa: PLC0415  (of the extra `neo4j`)
    except ModuleNotFoundError as error:
        raise _create_neo4j_error() from error
    user, password = environ.get("NEO4J_USERNAME", ""), environ.get("NEO4J_PASSWORD", "")
    return mirror(graph, Neo4jServer(url, user, password, database))


def reach_graph(url: str, environ: Mapping[str, str], seconds: float) -> None:
    """Connect to a graph server once within this time. Raises `ConfigError` without the extra `neo4j`."""
    try:
        from redstart.ports.memory.neo4j import Neo4jServer, reach  # noqa: PLC0415  (of the extra `neo4j`)
    except ModuleNotFoundError as error:
        raise _create_neo4j_error() from error
    reach(Neo4jServer(url, environ.get("NEO4J_USERNAME", ""), environ.get("NEO4J_PASSWORD", "")), seconds)


def _create_neo4j_error() -> ConfigError:
    return ConfigError("the package for Neo4j is not installed", remedy="pip install 'redstart[neo4j]'")


def _create_adapters(
    settings: Settings,
    database: Database,
    blobs: SweptBlobs,
    trees: GitTrees,
    world: World,
    listen: Callable[[Event], None] | None,
) -> Adapters:
    def create_ledger(limits: Limits, spend: Spend) -> StepLedger:
        return RunLedger(limits, spend, world.monotonic)

    return Adapters(
        store=SqlStore(database, world.now),
        journal=SqlJournal(database),
        blobs=blobs,
        trees=trees,
        memory=SqlMemory(database, create_embedder(settings), goals=HashingEmbedder()),
        lessons=create_lesson_selector(SqlLessonStore(database), world.now),
        world=world,
        model=None,
        sandbox=None,
        installer=IndexInstaller(settings.home, os.environ),
        ledger=create_ledger,
        listen=listen or _ignore_event,
        **_create_model_parts(settings),
    )


class _ModelParts(TypedDict):
    writer: str
    get_model_name: Callable[[Ask], str]
    budgeted: Callable[[Model, TimedLedger], Model]


def _create_model_parts(settings: Settings) -> _ModelParts:
    """Make the parts of the adapters that depend on the chosen models."""
    names = {Tier.fast: settings.models.fast, Tier.strong: settings.models.strong}

    def wrap_with_budget(model: Model, ledger: TimedLedger) -> Model:
        # The gateway reserves budget for each of its calls; a model with one call per question is wrapped.
        return (
            model.with_ledger(ledger) if isinstance(model, Gateway) else BudgetedModel(model, ledger, names.__getitem__)
        )

    roster = settings.models.roster
    return _ModelParts(
        writer=roster.get_default_model("patch", Tier.strong),
        get_model_name=lambda ask: shorten_model_name(roster.choose_models(ask)[0]),
        budgeted=wrap_with_budget,
    )


def create_embedder(settings: Settings) -> Embedder:
    """Make the embedder of the settings. No call is made yet; the first call reports an error in the settings."""
    memory, name = settings.memory, settings.memory.embedder
    if not name:
        return HashingEmbedder(near=memory.near)
    from redstart.ports.model.embedding import DEADLINE, SIMILARITY_THRESHOLD, ApiEmbedder, EmbeddingOptions  # noqa: PLC0415

    manner = EmbeddingOptions(
        deadline=settings.models.get_model_options(name).deadline or DEADLINE,
        similarity_threshold=SIMILARITY_THRESHOLD if memory.near is None else memory.near,
        dimensions=memory.dimensions,
        rates=get_profile(name, settings.models.profiles).rates,
        secrets=find_secrets(os.environ),
    )
    return ApiEmbedder(partial(find_embedding_address, settings), name, manner)


def find_embedding_address(settings: Settings) -> ModelAddress:
    """Find the address of the settings' embedder. Raises `ConfigError` if the settings do not give a usable one."""
    from redstart.ports.model.embedding import refuse_unfit  # noqa: PLC0415

    return refuse_unfit(find_model_address(settings, settings.memory.embedder, os.environ))


def _ignore_event(event: Event) -> None:
    """Ignore the event."""
    del event


def _print_message(text: str) -> None:
    print(escape_hidden(text), file=sys.stderr, flush=True)


def check_models(settings: Settings, *, keys: bool = True) -> None:
    """Raise `ConfigError` if a model has no usable name or, with `keys`, no key. No model is asked or loaded."""
    require_model(settings)
    for name in settings.models.roster.names:
        if has_endpoint(name):
            (find_model_address if keys else find_model_route)(settings, name, os.environ)


def connect(
    settings: Settings,
    notify: Callable[[str], None] = _print_message,
    rates: RateLimits | None = None,
    custom_model: Model | None = None,
) -> Model:
    """Put every model of the settings behind one gateway, or return the recorded or manual model that replaces all.

    `notify` shows messages to a person who answers by hand, `rates` are shared rate limits, and the last argument is
    the caller's model, which the settings name. Raises `ConfigError` if a model or its key is missing.
    """
    if custom_model is None:
        require_model(settings)
    models = settings.models
    kind, _, path = models.strong.partition(":")
    if kind in ("manual", "replay"):
        return _mask_model(
            _create_manual_model(settings, path, notify) if kind == "manual" else _create_replay_model(path)
        )
    routes = {name: _create_route(settings, name, custom_model) for name in models.roster.names}

    def choose(ask: Ask) -> list[ModelRoute]:
        return [routes[name] for name in models.roster.choose_models(ask)]

    return Gateway(choose, RetryPolicy(max_calls=models.tries, timeout=models.patience), rates=rates)


def load_profile(settings: Settings, step: str = "patch", tier: Tier | None = None) -> Profile:
    """Load the profile of the model that this step asks first; for a recording, that of the recorded model.

    Without a tier, the step's usual one counts. Raises `ConfigError` if a recording cannot be read.
    """
    tier = tier or (Tier.strong if step in ("patch", "reproduce") else Tier.fast)
    name = settings.models.roster.get_default_model(step, tier)
    if name.startswith("replay:"):
        from redstart.ports.model.replay import Cassette  # noqa: PLC0415

        name = Cassette.load(Path(name.removeprefix("replay:"))).model
    return get_profile(name, settings.models.profiles)


def create_question_options(settings: Settings, tier: Tier = Tier.strong) -> QuestionOptions:
    """Make the options for questions: the smallest context window of all models, the writer's form of edits."""
    writer = load_profile(settings, tier=tier)
    window = min(load_profile(settings, step).context for step in MODEL_STEPS)
    supports_schema = writer.shapes and writer.json_edits
    roster, options = settings.models.roster, settings.models.options
    limits_by_model = {
        name: StallLimits(warning=option.stall_warning, end=option.stall) for name, option in options.items()
    }
    return QuestionOptions(
        window=window,
        edits=writer.edits,
        shaped=supports_schema,
        brief=writer.brief,
        omits_documentation=writer.brief,
        asks_for_card=not load_profile(settings, "remember").brief,
        fast=tier is Tier.fast,
        stronger=roster.get_stronger_model("patch", Tier.strong) if tier is Tier.strong else "",
        stalls={name: limits for name, limits in limits_by_model.items() if limits != StallLimits()},
    )


def _create_route(settings: Settings, name: str, custom_model: Model | None) -> ModelRoute:
    models, model_options = settings.models, settings.models.get_model_options(name)
    model_profile = get_profile(name, models.profiles)
    model = (
        _create_model(settings, name, model_options.deadline or models.deadline, model_profile)
        if custom_model is None
        else custom_model
    )
    options = RouteOptions(
        model_options.temperature,
        model_options.max_tokens,
        model_options.at_once,
        model_options.tokens_a_minute,
        model_options.requests_a_minute,
    )
    return ModelRoute(name, _mask_model(model), profile=model_profile, options=options)


def _create_model(settings: Settings, name: str, deadline: float, model_profile: Profile) -> Model:
    if name.startswith("command:"):
        from redstart.ports.model.command import Command  # noqa: PLC0415

        return Command(name.removeprefix("command:"), name=name, deadline=deadline)
    if name.startswith(f"{PLUGIN}:"):
        return make_model(name, deadline)
    from redstart.ports.model.providers import create_provider  # noqa: PLC0415  (takes a second to load)

    return create_provider(find_model_address(settings, name, os.environ), deadline=deadline, profile=model_profile)


def _mask_model(model: Model) -> Model:
    """Wrap a model so that no question contains a secret of this machine."""
    return MaskedModel(model, find_secrets(os.environ))


def _create_manual_model(settings: Settings, folder: str, notify: Callable[[str], None]) -> Model:
    from redstart.ports.model.manual import ManualModel  # noqa: PLC0415

    return ManualModel(Path(folder) if folder else settings.home / "by-hand", notify, name=settings.models.strong)


def _create_replay_model(file: str) -> Model:
    from redstart.ports.model.replay import Cassette, ReplayModel  # noqa: PLC0415

    return ReplayModel(Cassette.load(Path(file)))


def load_engine(name: str = DEFAULT) -> Engine:
    """Load the engine `langgraph` or `inline`."""
    if name == "inline":
        from redstart.engines.inline import run_inline  # noqa: PLC0415

        return run_inline
    from redstart.engines.langgraph import run_langgraph  # noqa: PLC0415  (takes half a second to load)

    return run_langgraph

"""Load adapters of other packages by entry point. A plug-in is always named `plugin:NAME`, so it cannot replace a
built-in adapter.

A plug-in is imported only when it is named. An error in it, or in loading it, names its package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar, cast

from redstart.core.chat import Answer, Ask
from redstart.core.errors import ConfigError, ModelRefused, RedstartError, SandboxUnavailable
from redstart.core.shell import Completed, Execution
from redstart.ports.model.endpoints import PLUGIN
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox, SandboxLack, Workspaces, is_isolating
from redstart.ports.sandbox.self_test import prove

MODELS, SANDBOXES = "redstart.models", "redstart.sandboxes"
_GROUP_LABELS = {MODELS: "model", SANDBOXES: "sandbox"}

T = TypeVar("T")


def list_plugin_names(group: str) -> tuple[str, ...]:
    """List the names of the installed plug-ins without importing them."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def make_model(name: str, deadline: float) -> Model:
    """Make the model `plugin:NAME:MODEL` by `factory(MODEL, deadline)`. Raises `ConfigError` if the factory returns no
    model.
    """
    _, _, plugin_spec = name.partition(":")
    plugin, _, model = plugin_spec.partition(":")
    entry = _find_entry(MODELS, plugin)
    return _PluginModel(
        _call_factory(entry, MODELS, "ask", lambda factory: cast("Model", factory(model, deadline))), entry
    )


def make_sandbox(name: str, workspaces: Workspaces, scratch: Path) -> Sandbox:
    """Make the sandbox `plugin:NAME` by `factory(workspaces, scratch)`.

    Raises `ConfigError` if the factory returns no sandbox, and `SandboxUnavailable` if the factory raises it.
    """
    entry = _find_entry(SANDBOXES, name.partition(":")[2])
    inner = _call_factory(entry, SANDBOXES, "run", lambda factory: cast("Sandbox", factory(workspaces, scratch)))
    return _PluginSandbox(inner, entry)


def make_proven_sandbox(name: str, workspaces: Workspaces, scratch: Path, *, unsafe: bool) -> Sandbox:
    """Make the sandbox after a program failed to escape from it; `unsafe` skips that test.

    Raises as `prove` and `make_sandbox` do.
    """
    if not unsafe:
        prove(partial(make_sandbox, name), scratch)
    return make_sandbox(name, workspaces, scratch)


def find_package(group: str, name: str) -> str:
    """Import a plug-in and name its package. Raises `ConfigError` if it cannot be imported."""
    entry = _find_entry(group, name)
    _load_factory(entry)
    return _describe_package(entry)


class _PluginModel:
    def __init__(self, inner: Model, entry: EntryPoint) -> None:
        self._inner, self._entry = inner, entry

    async def ask(self, ask: Ask) -> Answer:
        try:
            answer = await self._inner.ask(ask)
        except RedstartError:
            raise
        except Exception as error:
            raise ModelRefused(_describe_failure(self._entry, error), remedy=_suggest_remedy(self._entry)) from error
        if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance]  (code of others)
            problem = f"{_describe_plugin(self._entry)} returned a {type(answer).__name__} instead of an answer"
            raise ModelRefused(problem, remedy=_suggest_remedy(self._entry))
        return answer


class _PluginSandbox:
    def __init__(self, inner: Sandbox, entry: EntryPoint) -> None:
        self._inner, self._entry = inner, entry
        self.tier = f"{PLUGIN}:{entry.name}"
        self.isolates = is_isolating(inner)
        lacks_by_value = {lack.value: lack for lack in SandboxLack}
        self.lacks = tuple(
            lacks_by_value[value] for value in map(str, getattr(inner, "lacks", ())) if value in lacks_by_value
        )

    async def run(self, execution: Execution) -> Completed:
        try:
            completed = await self._inner.run(execution)
        except RedstartError:
            raise
        except Exception as error:
            raise SandboxUnavailable(
                _describe_failure(self._entry, error), remedy=_suggest_remedy(self._entry)
            ) from error
        if not isinstance(completed, Completed):  # pyright: ignore[reportUnnecessaryIsInstance]  (code of others)
            problem = f"{_describe_plugin(self._entry)} returned a {type(completed).__name__} instead of a result"
            raise SandboxUnavailable(problem, remedy=_suggest_remedy(self._entry))
        return completed


def _find_entry(group: str, name: str) -> EntryPoint:
    entries = [entry for entry in entry_points(group=group) if entry.name == name]
    if not entries:
        installed = ", ".join(list_plugin_names(group)) or "none"
        remedy = f"install the package that provides it into the environment of redstart (installed: {installed})"
        raise ConfigError(f"no {_GROUP_LABELS[group]} plug-in is called {name!r}", remedy=remedy)
    if len(entries) > 1:
        packages = ", ".join(sorted(_describe_package(entry) for entry in entries))
        raise ConfigError(
            f"several packages provide the {_GROUP_LABELS[group]} plug-in {name!r}: {packages}",
            remedy="uninstall all of them except the one to use",
        )
    return entries[0]


def _call_factory(entry: EntryPoint, group: str, method: str, make: Callable[[Callable[..., object]], T]) -> T:
    factory = _load_factory(entry)
    try:
        instance = make(factory)
    except RedstartError:
        raise
    except Exception as error:
        raise ConfigError(_describe_failure(entry, error), remedy=_suggest_remedy(entry)) from error
    if not callable(getattr(instance, method, None)):
        raise ConfigError(
            f"{_describe_plugin(entry)} returned an object of type {type(instance).__name__}, which is not a "
            f"{_GROUP_LABELS[group]}: it has no method `{method}`",
            remedy=_suggest_remedy(entry),
        )
    return instance


def _load_factory(entry: EntryPoint) -> Callable[..., object]:
    try:
        return cast("Callable[..., object]", entry.load())
    except Exception as error:
        raise ConfigError(_describe_failure(entry, error), remedy=_suggest_remedy(entry)) from error


def _describe_package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _describe_plugin(entry: EntryPoint) -> str:
    return f"the plug-in {entry.name!r} of {_describe_package(entry)}"


def _describe_failure(entry: EntryPoint, error: Exception) -> str:
    reason = " ".join(str(error).split())
    return f"{_describe_plugin(entry)} failed ({type(error).__name__}{f': {reason}' if reason else ''})"


def _suggest_remedy(entry: EntryPoint) -> str:
    return f"reinstall or update the package, or tell its authors (entry point {entry.value})"

"""Load adapters of other packages by entry point. A plug-in is named `plugin:NAME`, never by a name of ours.

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
from redstart.ports.sandbox.port import Sandbox, SandboxLack, Workspaces, isolates
from redstart.ports.sandbox.prove import prove

MODELS, SANDBOXES = "redstart.models", "redstart.sandboxes"
_WORDS = {MODELS: "model", SANDBOXES: "sandbox"}

T = TypeVar("T")


def plugin_names(group: str) -> tuple[str, ...]:
    """List the names of the installed plug-ins without importing them."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def make_model(name: str, deadline: float) -> Model:
    """Make the model `plugin:NAME:MODEL` by `factory(MODEL, deadline)`. Raises `ConfigError` if that returns none."""
    _, _, rest = name.partition(":")
    plugin, _, model = rest.partition(":")
    entry = _found(MODELS, plugin)
    return _PluginModel(_made(entry, MODELS, "ask", lambda factory: cast("Model", factory(model, deadline))), entry)


def make_sandbox(name: str, workspaces: Workspaces, scratch: Path) -> Sandbox:
    """Make the sandbox `plugin:NAME` by `factory(workspaces, scratch)`.

    Raises `ConfigError` if that returns none, and `SandboxUnavailable` if the factory raises it.
    """
    entry = _found(SANDBOXES, name.partition(":")[2])
    inner = _made(entry, SANDBOXES, "run", lambda factory: cast("Sandbox", factory(workspaces, scratch)))
    return _PluginSandbox(inner, entry)


def proven_sandbox(name: str, workspaces: Workspaces, scratch: Path, *, unsafe: bool) -> Sandbox:
    """Make the sandbox after a program failed to escape from it; `unsafe` skips that test.

    Raises as `prove` and `make_sandbox` do.
    """
    if not unsafe:
        prove(partial(make_sandbox, name), scratch)
    return make_sandbox(name, workspaces, scratch)


def package_of(group: str, name: str) -> str:
    """Import a plug-in and name its package. Raises `ConfigError` if it cannot be imported."""
    entry = _found(group, name)
    _factory(entry)
    return _package(entry)


class _PluginModel:
    def __init__(self, inner: Model, entry: EntryPoint) -> None:
        self._inner, self._entry = inner, entry

    async def ask(self, ask: Ask) -> Answer:
        try:
            answer = await self._inner.ask(ask)
        except RedstartError:
            raise
        except Exception as error:
            raise ModelRefused(_failed(self._entry, error), remedy=_remedy(self._entry)) from error
        if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance]  (code of others)
            what = f"{_title(self._entry)} gave a {type(answer).__name__} in place of an answer"
            raise ModelRefused(what, remedy=_remedy(self._entry))
        return answer


class _PluginSandbox:
    def __init__(self, inner: Sandbox, entry: EntryPoint) -> None:
        self._inner, self._entry = inner, entry
        self.tier = f"{PLUGIN}:{entry.name}"
        self.isolates = isolates(inner)
        known = {lack.value: lack for lack in SandboxLack}
        self.lacks = tuple(known[word] for word in map(str, getattr(inner, "lacks", ())) if word in known)

    async def run(self, execution: Execution) -> Completed:
        try:
            completed = await self._inner.run(execution)
        except RedstartError:
            raise
        except Exception as error:
            raise SandboxUnavailable(_failed(self._entry, error), remedy=_remedy(self._entry)) from error
        if not isinstance(completed, Completed):  # pyright: ignore[reportUnnecessaryIsInstance]  (code of others)
            what = f"{_title(self._entry)} gave a {type(completed).__name__} in place of a result"
            raise SandboxUnavailable(what, remedy=_remedy(self._entry))
        return completed


def _found(group: str, name: str) -> EntryPoint:
    entries = [entry for entry in entry_points(group=group) if entry.name == name]
    if not entries:
        known = ", ".join(plugin_names(group)) or "none"
        remedy = f"install the package that provides it into the environment of redstart (installed: {known})"
        raise ConfigError(f"no {_WORDS[group]} plug-in is called {name!r}", remedy=remedy)
    if len(entries) > 1:
        packages = ", ".join(sorted(_package(entry) for entry in entries))
        raise ConfigError(
            f"several packages provide the {_WORDS[group]} plug-in {name!r}: {packages}",
            remedy="uninstall all of them except the one to use",
        )
    return entries[0]


def _made(entry: EntryPoint, group: str, method: str, make: Callable[[Callable[..., object]], T]) -> T:
    factory = _factory(entry)
    try:
        made = make(factory)
    except RedstartError:
        raise
    except Exception as error:
        raise ConfigError(_failed(entry, error), remedy=_remedy(entry)) from error
    if not callable(getattr(made, method, None)):
        raise ConfigError(
            f"{_title(entry)} gave a {type(made).__name__}, which is no {_WORDS[group]}: it has no method `{method}`",
            remedy=_remedy(entry),
        )
    return made


def _factory(entry: EntryPoint) -> Callable[..., object]:
    try:
        return cast("Callable[..., object]", entry.load())
    except Exception as error:
        raise ConfigError(_failed(entry, error), remedy=_remedy(entry)) from error


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _title(entry: EntryPoint) -> str:
    return f"the plug-in {entry.name!r} of {_package(entry)}"


def _failed(entry: EntryPoint, error: Exception) -> str:
    why = " ".join(str(error).split())
    return f"{_title(entry)} failed ({type(error).__name__}{f': {why}' if why else ''})"


def _remedy(entry: EntryPoint) -> str:
    return f"reinstall or update the package, or tell its authors (entry point {entry.value})"

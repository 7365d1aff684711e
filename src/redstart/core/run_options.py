"""The user's options for a run besides its spec, stored so that a resumed run uses the same ones. They hold no key."""

from __future__ import annotations

from typing import ClassVar

from redstart.core.formats import OPTIONS, StorageFormat, StoredValue
from redstart.core.frozen import FrozenValue


class ChosenEndpoint(FrozenValue):
    """The address of a model if it is not its provider's default, and the variable that holds its key."""

    base_url: str = ""
    """Without user name, password and query."""
    key_variable: str = ""


class ChosenModels(FrozenValue):
    """The models of a run, as `provider:name`."""

    strong: str = ""
    fast: str = ""
    fallback: tuple[str, ...] = ()
    steps: dict[str, str] = {}
    escalate: int = 2
    endpoints: dict[str, ChosenEndpoint] = {}
    """Endpoints by model, for the models that have their own."""


class RunOptions(StoredValue):
    stored_as: ClassVar[StorageFormat] = OPTIONS
    models: ChosenModels = ChosenModels()
    sandbox: str = "auto"
    image: str = ""
    runtime: str = ""
    unsafe: bool = False
    """Whether the tests may run without a sandbox."""
    engine: str = ""
    patch: str = ""
    """The file to write the patch to; empty for the default."""

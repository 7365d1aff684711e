"""What the user chose for a run besides its spec. It is kept so that a resumed run does not change it. Holds no key."""

from __future__ import annotations

from typing import ClassVar

from redstart.core.formats import OPTIONS, StorageFormat, StoredValue
from redstart.core.noun import FrozenValue


class ChosenEndpoint(FrozenValue):
    """Where a model is reached, where that is not its provider's own address, and which variable holds its key."""

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
    """By model, of those that have one of their own."""


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
    """The file that the patch is written to; empty for the default."""

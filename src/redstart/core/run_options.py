"""What the user chose for a run besides its spec. It is kept so that a resumed run does not change it. Holds no key."""

from __future__ import annotations

from typing import ClassVar

from redstart.core.formats import OPTIONS, Format, StoredNoun
from redstart.core.noun import Noun


class ChosenEndpoint(Noun):
    """Where a model is reached, where that is not its provider's own address, and which variable holds its key."""

    base_url: str = ""
    """Without user name, password and query."""
    key_variable: str = ""


class ChosenModels(Noun):
    """The models of a run, as `provider:name`."""

    strong: str = ""
    fast: str = ""
    fallback: tuple[str, ...] = ()
    steps: dict[str, str] = {}
    escalate: int = 2
    endpoints: dict[str, ChosenEndpoint] = {}
    """By model, of those that have one of their own."""


class RunOptions(StoredNoun):
    stored_as: ClassVar[Format] = OPTIONS
    models: ChosenModels = ChosenModels()
    sandbox: str = "auto"
    image: str = ""
    runtime: str = ""
    unsafe: bool = False
    """Whether the tests may run without a sandbox."""
    engine: str = ""
    patch: str = ""
    """The file that the patch is written to; empty for the default."""

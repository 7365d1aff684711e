"""Settings of where runs are kept, and whose they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

HOME = "home"
"""The tenant of whoever names none."""
DATABASE = "redstart.db"
"""The file in `home` that is the store, where no `url` names another."""
DEMO = "demo"
"""The directory in `home` that is the home of the last demo."""
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def _address(text: str) -> str:
    if text and not text.startswith("postgresql://"):
        raise ValueError("the address must begin with postgresql://")
    return text


def _tenant(text: str) -> str:
    if not _TENANT.fullmatch(text):
        raise ValueError(
            "a tenant's name has up to 63 lowercase letters, digits, dots and dashes and begins with a letter or digit"
        )
    return text


Tenant = Annotated[str, AfterValidator(_tenant)]


class StoreSettings(BaseModel):
    """Where runs and all that belongs to them are kept."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: Annotated[str, AfterValidator(_address)] = ""
    """A Postgres database, as postgresql://user:password@host/database; empty for a file in `home`."""
    blobs: Literal["", "folder", "database"] = ""
    """Where blobs are kept: in a `folder` of `home` or in the `database`; empty for a folder, with a `url` for that."""

    @property
    def keeps_blobs(self) -> bool:
        """Whether blobs are in the database."""
        return self.blobs == "database" or bool(self.url and not self.blobs)


def folder_of(home: Path, tenant: str) -> Path:
    """Where the files of a tenant lie: each has a folder of its own but the one that everybody is who names none."""
    return home if tenant == HOME else home / "tenants" / tenant


def _model(text: str) -> str:
    if text and not all(text.partition(":")):
        raise ValueError("write an embedder as provider:name, such as ollama:nomic-embed-text")
    return text


class MemorySettings(BaseModel):
    """What runs learn from one another."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    explore: bool = True
    """Whether a lesson that applies is now and then withheld, so that its worth is known. 0 shows them all."""
    embedder: Annotated[str, AfterValidator(_model)] = ""
    """`provider:model` whose places of words are compared; empty for the built-in one, which needs nothing."""
    near: float | None = Field(default=None, ge=0, le=1)
    """From which cosine on the words of two failures count as alike; None for what fits the embedder."""
    dimensions: int | None = Field(default=None, ge=8, le=16_000)
    """Numbers of a vector that a model is asked for, where it can give fewer than its own."""

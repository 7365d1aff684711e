"""Settings of the store, the tenant and the memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

DEFAULT_TENANT = "home"
"""The tenant if none is named."""
DATABASE = "redstart.db"
"""The database file in `home`, used if no `url` is set."""
DEMO = "demo"
"""The directory in `home` that is the home of the last demo."""
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def _validate_address(text: str) -> str:
    if text and not text.startswith("postgresql://"):
        raise ValueError("the address must begin with postgresql://")
    return text


def _validate_tenant(text: str) -> str:
    if not _TENANT.fullmatch(text):
        raise ValueError(
            "a tenant's name has up to 63 lowercase letters, digits, dots and dashes and begins with a letter or digit"
        )
    return text


Tenant = Annotated[str, AfterValidator(_validate_tenant)]


class StoreSettings(BaseModel):
    """Where runs and their data are stored."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: Annotated[str, AfterValidator(_validate_address)] = ""
    """A Postgres database, as postgresql://user:password@host/database; empty for a file in `home`."""
    blobs: Literal["", "folder", "database"] = ""
    """Where blobs are stored: in a `folder` of `home` or in the `database`. If empty, in the database if `url` is set,
    else in a folder."""

    @property
    def keeps_blobs(self) -> bool:
        """Whether blobs are in the database."""
        return self.blobs == "database" or bool(self.url and not self.blobs)


def find_tenant_folder(home: Path, tenant: str) -> Path:
    """Find the folder of a tenant's files: a folder of its own, or `home` itself for the default tenant."""
    return home if tenant == DEFAULT_TENANT else home / "tenants" / tenant


def _validate_model(text: str) -> str:
    if text and not all(text.partition(":")):
        raise ValueError("write an embedder as provider:name, such as ollama:nomic-embed-text")
    return text


class MemorySettings(BaseModel):
    """What runs learn from one another."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    explore: bool = True
    """Whether an applicable lesson is sometimes withheld to measure its effect. 0 shows all lessons."""
    embedder: Annotated[str, AfterValidator(_validate_model)] = ""
    """The embedding model as `provider:model`; empty for the built-in embedder, which needs nothing."""
    near: float | None = Field(default=None, ge=0, le=1)
    """The cosine from which two failures count as similar; None for the embedder's own value."""
    dimensions: int | None = Field(default=None, ge=8, le=16_000)
    """The vector dimensions to request from a model that can return fewer than its default."""

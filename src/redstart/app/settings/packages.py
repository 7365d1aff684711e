"""The settings of which packages may be installed without asking."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from redstart.toolkit.installs.allowed import ALLOWED, is_name


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{text!a} is no name of a package; write it without a version")
    return text


Names = tuple[Annotated[str, AfterValidator(_name)], ...]


class AllowSettings(BaseModel):
    """Packages that are installed without asking, by language. What is listed replaces what is there by default."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    python: Names = ALLOWED["python"]
    """Names at the Python index."""
    node: Names = ALLOWED["node"]
    """Names at the npm registry."""


class DependencySettings(BaseModel):
    """Which packages a project that redstart makes or changes may bring in."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    allow: AllowSettings = AllowSettings()

    @property
    def by_language(self) -> dict[str, Names]:
        return {"python": self.allow.python, "node": self.allow.node}

"""The settings of how code is checked."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from redstart.core.finding import Checks


def command_line(text: str) -> str:
    """A command line as one would type it. Raises `ValueError` where it has an end that is missing."""
    shlex.split(text)
    return text


class ChecksSettings(BaseModel):
    """How code is checked, by `audit` and before the tests of a patch run."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    commands: dict[str, Annotated[str, AfterValidator(command_line)]] = {}
    """Further tools by name, as one would type them; they run in the sandbox. The name of a built-in tool (ruff,
    bandit, secrets, rules) replaces it, and an empty command leaves it out."""
    block: tuple[str, ...] = ("eval", "exec", "os.system")
    """Calls, by their full names, that no patch may add."""

    @property
    def checks(self) -> Checks:
        return Checks(
            commands={name: tuple(shlex.split(text)) for name, text in self.commands.items()}, block=self.block
        )

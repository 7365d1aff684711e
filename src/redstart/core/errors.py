"""What can be broken. An expected failure (a red test, an edit that does not apply) is a value, never one of these.

RedstartError
├── ConfigError            exit 2
├── PortError              exit 3
│   ├── ModelError
│   │   ├── ModelRefused   not worth asking again
│   │   ├── ModelBusy
│   │   ├── ModelUnreachable
│   │   ├── ModelTimeout
│   │   └── ModelGarbled
│   ├── BudgetExceeded
│   ├── SandboxUnavailable
│   │   └── SandboxDied
│   └── StoreError
│       ├── BlobMissing
│       └── Fenced
├── PolicyViolation        exit 6
├── ReplayDiverged         exit 3
└── Needs                  never reaches a person: the driver hands the run on

The docstring of each class is its default message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from redstart.core.chat import Usage


class RedstartError(Exception):
    """Something went wrong in redstart."""

    exit_code = 3

    def __init__(self, message: str = "", *, remedy: str = "", causes: Sequence[RedstartError] = ()) -> None:
        """`causes` are the several errors that this one sums up; then each line of `remedy` is one to choose from."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.remedy = remedy
        self.causes = tuple(causes)


class ConfigError(RedstartError):
    """A setting, a flag or an argument cannot be used as given."""

    exit_code = 2


class PortError(RedstartError):
    """A part that redstart stands on does not work."""


class ModelError(PortError):
    """The model could not be reached, or its answer was no answer."""

    passing = False
    """Whether the same question may well be answered a moment later."""

    def __init__(
        self, message: str = "", *, remedy: str = "", retry_after: float | None = None, usage: Usage | None = None
    ) -> None:
        """`retry_after` is what the endpoint asked to wait, in seconds.

        `usage` is what was spent all the same: as the endpoint said, else the most that it can have been.
        """
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after
        self.usage = usage or Usage()


class ModelRefused(ModelError):
    """The model's endpoint refuses the call, and would again."""


class ModelBusy(ModelError):
    """The model's endpoint is overloaded or down, or its rate is used up for now."""

    passing = True


class ModelUnreachable(ModelError):
    """The connection to the model's endpoint was not made, or broke."""

    passing = True


class ModelTimeout(ModelError):
    """The model did not answer before the deadline."""

    passing = True


class ModelGarbled(ModelError):
    """The model's endpoint sent something that is no whole answer."""

    passing = True


class BudgetExceeded(PortError):
    """The next model call could cost more than what is left under the cap."""

    exit_code = 4


class SandboxUnavailable(PortError):
    """No sandbox can be had here, or the one in use died."""


class SandboxDied(SandboxUnavailable):
    """The sandbox was ended from outside while a command ran in it; what the command did is not known."""


class StoreError(PortError):
    """The run store cannot be read or written."""


class BlobMissing(StoreError):
    """A part of a run is no longer kept."""


class Fenced(StoreError):
    """Another driver has taken this run over; nothing more is written from here."""


class PolicyViolation(RedstartError):
    """What was asked for is refused by policy."""

    exit_code = 6


class ReplayDiverged(RedstartError):
    """The replay asked for something that the journal does not hold."""


class Needs(RedstartError):
    """The next call needs a privilege that this driver does not have."""

    def __init__(self, privilege: Literal["think", "act"]) -> None:
        super().__init__(f"the next call needs a driver that may {privilege}")
        self.privilege: Literal["think", "act"] = privilege

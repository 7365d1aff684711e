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
│       ├── Fenced
│       └── NewerFormat
├── PolicyViolation        exit 6
├── ReplayDiverged         exit 3
├── InternalError          exit 3
└── Needs                  never reaches a person: the driver hands the run on

The `message` of each class is what it says where nobody says more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from redstart.core.chat import Usage


class RedstartError(Exception):
    message = "Something went wrong in redstart."

    exit_code = 3

    def __init__(self, message: str = "", *, remedy: str = "", causes: Sequence[RedstartError] = ()) -> None:
        """`causes` are the several errors that this one sums up; then each line of `remedy` is one to choose from."""
        super().__init__(message or self.message)
        self.remedy = remedy
        self.causes = tuple(causes)


class ConfigError(RedstartError):
    message = "A setting, a flag or an argument cannot be used as given."

    exit_code = 2


class PortError(RedstartError):
    message = "A part that redstart stands on does not work."


class ModelError(PortError):
    message = "The model could not be reached, or its answer was no answer."

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
    message = "The model's endpoint refuses the call, and would again."


class ModelBusy(ModelError):
    message = "The model's endpoint is overloaded or down, or its rate is used up for now."

    passing = True


class ModelUnreachable(ModelError):
    message = "The connection to the model's endpoint was not made, or broke."

    passing = True


class ModelTimeout(ModelError):
    message = "The model did not answer before the deadline."

    passing = True


class ModelGarbled(ModelError):
    message = "The model's endpoint sent something that is no whole answer."

    passing = True


class BudgetExceeded(PortError):
    message = "The next model call could cost more than what is left under the cap."

    exit_code = 4


class SandboxUnavailable(PortError):
    message = "No sandbox can be had here, or the one in use died."


class SandboxDied(SandboxUnavailable):
    message = "The sandbox was ended from outside while a command ran in it; what the command did is not known."


class StoreError(PortError):
    message = "The run store cannot be read or written."


class BlobMissing(StoreError):
    message = "A part of a run is no longer kept."


class Fenced(StoreError):
    message = "Another driver has taken this run over; nothing more is written from here."


class NewerFormat(StoreError):
    """What was stored has a format that is not known yet."""

    message = "This was stored by a newer version of redstart."

    def __init__(self, message: str = "") -> None:
        super().__init__(message, remedy="upgrade redstart")


class PolicyViolation(RedstartError):
    message = "What was asked for is refused by policy."

    exit_code = 6


class ReplayDiverged(RedstartError):
    message = "The replay asked for something that the journal does not hold."


class InternalError(RedstartError):
    message = "Redstart has a defect: something that always holds does not."


class Needs(RedstartError):
    """The next call needs a privilege that this driver does not have."""

    def __init__(self, privilege: Literal["think", "act"]) -> None:
        super().__init__(f"the next call needs a driver that may {privilege}")
        self.privilege: Literal["think", "act"] = privilege

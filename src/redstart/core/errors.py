"""The exceptions for parts of Redstart, or of its surroundings, that do not work.

An expected failure (a failing test, an edit that does not apply) is a value, never one of these.

RedstartError
├── ConfigError            exit 2
├── PortError              exit 3
│   ├── ModelError
│   │   ├── ModelRefused   a retry does not help
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
└── Needs                  never shown to a user: the driver hands the run on

The `message` of each class is the default text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from redstart.core.chat import Usage


class RedstartError(Exception):
    message = "Something went wrong in redstart."

    exit_code = 3

    def __init__(self, message: str = "", *, remedy: str = "", causes: Sequence[RedstartError] = ()) -> None:
        """`causes` are the errors that this one summarizes; each line of `remedy` is then one alternative."""
        super().__init__(message or self.message)
        self.remedy = remedy
        self.causes = tuple(causes)


class ConfigError(RedstartError):
    message = "A setting, a flag or an argument is invalid."

    exit_code = 2


class PortError(RedstartError):
    message = "A component that Redstart depends on does not work."


class ModelError(PortError):
    message = "The model could not be reached, or its response was unusable."

    is_transient = False
    """Whether the error is temporary, so that a retry may succeed."""

    def __init__(
        self, message: str = "", *, remedy: str = "", retry_after: float | None = None, usage: Usage | None = None
    ) -> None:
        """`retry_after` is the number of seconds that the endpoint asks to wait.

        `usage` is what the failed call cost: as the endpoint reports it, else the possible maximum.
        """
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after
        self.usage = usage or Usage()


class ModelRefused(ModelError):
    message = "The model's endpoint refuses the call. A retry does not help."


class ModelBusy(ModelError):
    message = "The model's endpoint is overloaded or down, or its rate limit is reached."

    is_transient = True


class ModelUnreachable(ModelError):
    message = "The connection to the model's endpoint failed."

    is_transient = True


class ModelTimeout(ModelError):
    message = "The model did not answer before the deadline."

    is_transient = True


class ModelGarbled(ModelError):
    message = "The model's endpoint sent an invalid or incomplete response."

    is_transient = True


class BudgetExceeded(PortError):
    message = "The next model call could exceed the cost limit."

    exit_code = 4


class SandboxUnavailable(PortError):
    message = "No sandbox is available, or the one in use died."


class SandboxDied(SandboxUnavailable):
    message = "The sandbox was stopped from outside while a command ran in it. The outcome of the command is unknown."


class StoreError(PortError):
    message = "The run store cannot be read or written."


class BlobMissing(StoreError):
    message = "A part of a run is no longer stored."


class Fenced(StoreError):
    message = "Another driver has taken this run over. This one writes nothing more."


class NewerFormat(StoreError):
    """The stored data has a format that this version does not know yet."""

    message = "This was stored by a newer version of redstart."

    def __init__(self, message: str = "") -> None:
        super().__init__(message, remedy="upgrade redstart")


class PolicyViolation(RedstartError):
    message = "The request is refused by policy."

    exit_code = 6


class ReplayDiverged(RedstartError):
    message = "The replay made a call that is not in the journal."


class InternalError(RedstartError):
    message = "Redstart has a defect: an internal invariant is violated."


class Needs(RedstartError):
    """The next call requires a privilege that this driver does not have."""

    def __init__(self, privilege: Literal["think", "act"]) -> None:
        super().__init__(f"the next call needs a driver that may {privilege}")
        self.privilege: Literal["think", "act"] = privilege

"""Settings of a fleet: where its server is and what its workers may count on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class FleetSettings(BaseModel):
    """Many machines that drive runs together."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    address: str = ""
    """The fleet's server, as host:port; empty where there is no fleet."""
    namespace: str = "default"
    """Which of the server's namespaces runs are in."""
    same_machine: bool = False
    """Whether the workers are on this machine, so that a run may use what lies only here."""
    at_once: int = Field(default=4, gt=0)
    """How many runs a worker drives at a time, in each of its pools."""
    deployment: str = ""
    """The name that workers are versioned under; empty where a worker takes what any version began."""
    build: str = ""
    """The version of a worker in that; empty for the version of redstart."""

"""Submit a run to a server that has only just started."""

from __future__ import annotations

from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from redstart.core.errors import PortError
from redstart.engines.temporal import client as module
from redstart.engines.temporal.client import FleetClient
from redstart.testing.states import make_state


class Server:
    """Refuses the first calls with these codes, then accepts runs."""

    def __init__(self, *refusals: RPCStatusCode) -> None:
        self.refusals = list(refusals)
        self.taken: list[str] = []

    async def start_workflow(self, *_: Any, id: str, **__: Any) -> None:  # noqa: A002
        if self.refusals:
            raise RPCError("Namespace default is not found.", self.refusals.pop(0), b"")
        self.taken.append(id)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_RETRY_SECONDS", 0.0)


async def submit(server: Server) -> None:
    await FleetClient(cast("Client", server)).submit(make_state())


async def test_server_that_does_not_know_its_namespace_yet_is_asked_again() -> None:
    server = Server(RPCStatusCode.NOT_FOUND, RPCStatusCode.NOT_FOUND)
    await submit(server)
    assert len(server.taken) == 1


async def test_namespace_that_stays_unknown_is_reported() -> None:
    server = Server(*[RPCStatusCode.NOT_FOUND] * module.CONNECT_ATTEMPTS)
    with pytest.raises(PortError, match="Namespace default is not found"):
        await submit(server)
    assert server.taken == []


async def test_other_refusals_are_reported_without_retry() -> None:
    server = Server(RPCStatusCode.PERMISSION_DENIED)
    with pytest.raises(PortError):
        await submit(server)
    assert (server.refusals, server.taken) == ([], [])

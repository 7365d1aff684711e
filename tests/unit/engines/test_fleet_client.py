"""Submit a run to a server that has only just started."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from redstart.core.errors import PortError
from redstart.engines.temporal import client as module
from redstart.engines.temporal.client import FleetClient
from redstart.testing.states import state


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
    monkeypatch.setattr(module, "AGAIN", 0.0)


def submit(server: Server) -> None:
    asyncio.run(FleetClient(cast("Client", server)).submit(state()))


def test_a_server_that_does_not_know_its_namespace_yet_is_asked_again() -> None:
    server = Server(RPCStatusCode.NOT_FOUND, RPCStatusCode.NOT_FOUND)
    submit(server)
    assert len(server.taken) == 1


def test_one_that_never_knows_it_is_told() -> None:
    server = Server(*[RPCStatusCode.NOT_FOUND] * module.TRIES)
    with pytest.raises(PortError, match="Namespace default is not found"):
        submit(server)
    assert server.taken == []


def test_any_other_refusal_is_told_at_once() -> None:
    server = Server(RPCStatusCode.PERMISSION_DENIED)
    with pytest.raises(PortError):
        submit(server)
    assert (server.refusals, server.taken) == ([], [])

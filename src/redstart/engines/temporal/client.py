"""The fleet as whoever hands it runs sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import Priority, SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.common import WorkflowIDConflictPolicy as Conflict
from temporalio.service import RPCError, RPCStatusCode

from redstart.core.errors import ConfigError, PortError
from redstart.core.run import RunState
from redstart.engines.temporal.orders import (
    ATTRIBUTES,
    QUEUES,
    THINK,
    DriveOrder,
    DriveReport,
    SupervisorOrder,
    SupervisorState,
    order_of,
    workflow_id,
)
from redstart.engines.temporal.supervisor import RunSupervisor
from redstart.flow.route import route

PATIENCE = timedelta(seconds=10)
TRIES, AGAIN = 50, 0.2
"""How often, and after how many seconds each, a server that has just started is asked again."""
ACTS_FIRST = ("reproduce", "apply", "check", "test")
"""Steps whose first call needs a sandbox; a wrong guess costs one handing over."""


class SupervisorInfo(NamedTuple):
    """A supervisor as a server lists it."""

    run_id: str
    tenant: str
    mode: str
    repo: str
    status: str
    outcome: str


class FleetClient:
    """Raises `PortError` where the server does not answer."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    async def connect(cls, address: str, namespace: str) -> FleetClient:
        return cls(await connect(address, namespace))

    async def submit(self, state: RunState) -> None:
        """Has the run driven from where it stands; a supervisor that it has already is told to go on.

        Raises `ConfigError` where the server does not know our search attributes.
        """
        try:
            for left in reversed(range(TRIES)):
                if await self._began(state, last=left == 0):
                    return
                await asyncio.sleep(AGAIN)
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT and "earch attribute" in str(error):
                raise ConfigError(
                    "the fleet's server does not know the attributes that runs are listed by",
                    remedy="run once: redstart fleet register",
                ) from error
            raise _unreachable(error) from error

    async def _began(self, state: RunState, *, last: bool) -> bool:
        """False where the server does not know our namespace, which `connect` saw: a part of it has just started."""
        order = order_of(state)
        values = (order.tenant, state.spec.repo, state.spec.mode.value, "")
        try:
            await self.client.start_workflow(
                RunSupervisor.run,
                SupervisorOrder(order, needed_first(state)),
                id=workflow_id(order),
                task_queue=THINK,
                id_conflict_policy=Conflict.USE_EXISTING,
                start_signal="go_on",
                search_attributes=TypedSearchAttributes(
                    [SearchAttributePair(_key(name), value) for name, value in zip(ATTRIBUTES, values, strict=True)]
                ),
                priority=Priority(fairness_key=order.tenant),
                rpc_timeout=PATIENCE,
            )
        except RPCError as error:
            if last or error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    async def tell(self, order: DriveOrder, signal: str) -> bool:
        """Passes on `go_on`, `pause`, `cancel` or `let_go`. False where the run has no supervisor to hear it."""
        try:
            await self.client.get_workflow_handle(workflow_id(order)).signal(signal, rpc_timeout=PATIENCE)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise _unreachable(error) from error
        return True

    async def standing(self, order: DriveOrder) -> SupervisorState | None:
        """What the run's supervisor is doing; None where it has none that is at work.

        Raises `PortError` also where no worker is there to answer for it.
        """
        handle = self.client.get_workflow_handle(workflow_id(order))
        try:
            described = await handle.describe(rpc_timeout=PATIENCE)
            if described.status is not WorkflowExecutionStatus.RUNNING:
                return None
            return await handle.query(RunSupervisor.standing, rpc_timeout=PATIENCE)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise _unreachable(error) from error

    async def is_supervised(self, order: DriveOrder) -> bool:
        """Whether the run has a supervisor that is at work, whoever answers for it."""
        try:
            described = await self.client.get_workflow_handle(workflow_id(order)).describe(rpc_timeout=PATIENCE)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise _unreachable(error) from error
        return described.status is WorkflowExecutionStatus.RUNNING

    async def ended(self, order: DriveOrder) -> DriveReport:
        """Waits for the supervisor's end."""
        handle = self.client.get_workflow_handle_for(RunSupervisor.run, workflow_id(order))
        try:
            return await handle.result()
        except WorkflowFailureError as error:
            raise PortError(f"the supervisor of run {order.run_id} was ended: {error.cause}") from error

    async def register(self) -> tuple[str, ...]:
        """Makes our search attributes known to the server; those that were not known before."""
        service, namespace = self.client.operator_service, self.client.namespace
        try:
            known = await service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
            missing = tuple(name for name in ATTRIBUTES if name not in known.custom_attributes)
            if missing:
                kinds = dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
                await service.add_search_attributes(
                    AddSearchAttributesRequest(namespace=namespace, search_attributes=kinds)
                )
        except RPCError as error:
            raise _unreachable(error) from error
        return missing

    async def workers(self) -> dict[str, int]:
        """How many workers each pool has, as far as the server has heard of them in the last minutes."""
        found: dict[str, int] = {}
        for pool, queue in QUEUES.items():
            request = DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            )
            try:
                said = await self.client.workflow_service.describe_task_queue(request, timeout=PATIENCE)
            except RPCError as error:
                raise _unreachable(error) from error
            found[pool] = len({poller.identity for poller in said.pollers})
        return found

    async def promote(self, deployment: str, build: str) -> None:
        """From now on what was begun under any build of the deployment is finished by this one.

        Raises `ConfigError` where the server knows no worker of that build yet.
        """
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace,
            deployment_name=deployment,
            build_id=build,
            ignore_missing_task_queues=True,
        )
        try:
            await self.client.workflow_service.set_worker_deployment_current_version(request, timeout=PATIENCE)
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
                raise ConfigError(
                    f"the fleet has no worker of {deployment} {build}", remedy="start one first: redstart worker"
                ) from error
            raise _unreachable(error) from error

    async def supervised(self, tenant: str, limit: int = 100) -> Sequence[SupervisorInfo]:
        """The tenant's supervisors that are at work, newest first."""
        query = f"{ATTRIBUTES[0]} = '{tenant}' AND ExecutionStatus = 'Running'"
        found: list[SupervisorInfo] = []
        try:
            async for workflow in self.client.list_workflows(query, limit=limit):
                told = workflow.typed_search_attributes
                _, repo, mode, outcome = (str(told.get(_key(name)) or "") for name in ATTRIBUTES)
                status = workflow.status.name.lower() if workflow.status else ""
                found.append(SupervisorInfo(workflow.id.partition("/")[2], tenant, mode, repo, status, outcome))
        except RPCError as error:
            raise _unreachable(error) from error
        return found


async def connect(address: str, namespace: str) -> Client:
    """Raises `PortError` where no server answers there, or none with that namespace."""
    try:
        client = await Client.connect(address, namespace=namespace, connect_timeout=PATIENCE)
        await client.count_workflows("ExecutionStatus = 'Running'", rpc_timeout=PATIENCE)
    except (RPCError, RuntimeError) as error:
        raise _unreachable(error, address) from error
    return client


def needed_first(state: RunState) -> str:
    """Which privilege the run most likely needs next."""
    step = route(state)
    return "act" if step is not None and step.value in ACTS_FIRST else "think"


def _key(name: str) -> SearchAttributeKey[str]:
    return SearchAttributeKey.for_keyword(name)


def _unreachable(error: Exception, address: str = "") -> PortError:
    where = f" at {address}" if address else ""
    return PortError(f"the fleet's server{where} does not answer as it should: {error}", remedy="redstart fleet status")

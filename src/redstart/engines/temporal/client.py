"""The client of a fleet: submits runs and asks about them."""

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
    create_order,
    make_workflow_id,
)
from redstart.engines.temporal.supervisor import RunSupervisor
from redstart.flow.route import route

RPC_TIMEOUT = timedelta(seconds=10)
CONNECT_ATTEMPTS, CONNECT_RETRY_SECONDS = 50, 0.2
"""How often to ask a server that has just started, and the seconds between two requests."""
ACTS_FIRST = ("reproduce", "apply", "check", "test")
"""Steps whose first call needs a sandbox; a wrong guess costs one handover."""


class SupervisorInfo(NamedTuple):
    """A supervisor as a server lists it."""

    run_id: str
    tenant: str
    mode: str
    repo: str
    status: str
    outcome: str


class FleetClient:
    """A client of the fleet's server. Methods raise `PortError` if the server does not respond."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    async def connect(cls, address: str, namespace: str) -> FleetClient:
        return cls(await connect(address, namespace))

    async def submit(self, state: RunState) -> None:
        """Let the fleet continue the run from its current state. If it already has a supervisor, tell that to continue.

        Raises `ConfigError` if the server does not know our search attributes.
        """
        try:
            for remaining in reversed(range(CONNECT_ATTEMPTS)):
                if await self._try_start(state, is_last_try=remaining == 0):
                    return
                await asyncio.sleep(CONNECT_RETRY_SECONDS)
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT and "earch attribute" in str(error):
                raise ConfigError(
                    "the fleet's server does not know the search attributes of runs",
                    remedy="run once: redstart fleet register",
                ) from error
            raise _make_server_error(error) from error

    async def _try_start(self, state: RunState, *, is_last_try: bool) -> bool:
        """Start the supervisor. False if a part of the server has just started and does not know our namespace, which
        `connect` saw."""
        order = create_order(state)
        values = (order.tenant, state.spec.repo, state.spec.mode.value, "")
        try:
            await self.client.start_workflow(
                RunSupervisor.run,
                SupervisorOrder(order, guess_first_privilege(state)),
                id=make_workflow_id(order),
                task_queue=THINK,
                id_conflict_policy=Conflict.USE_EXISTING,
                start_signal="go_on",
                search_attributes=TypedSearchAttributes(
                    [
                        SearchAttributePair(_make_attribute_key(name), value)
                        for name, value in zip(ATTRIBUTES, values, strict=True)
                    ]
                ),
                priority=Priority(fairness_key=order.tenant),
                rpc_timeout=RPC_TIMEOUT,
            )
        except RPCError as error:
            if is_last_try or error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    async def send_signal(self, order: DriveOrder, signal: str) -> bool:
        """Send `go_on`, `pause`, `cancel` or `let_go`. False if the run has no supervisor to receive it."""
        try:
            await self.client.get_workflow_handle(make_workflow_id(order)).signal(signal, rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise _make_server_error(error) from error
        return True

    async def get_supervisor_state(self, order: DriveOrder) -> SupervisorState | None:
        """Return what the run's supervisor is doing; None if no supervisor is running.

        Raises `PortError` also if no worker is available to answer for it.
        """
        handle = self.client.get_workflow_handle(make_workflow_id(order))
        try:
            description = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            if description.status is not WorkflowExecutionStatus.RUNNING:
                return None
            return await handle.query(RunSupervisor.standing, rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise _make_server_error(error) from error

    async def is_supervised(self, order: DriveOrder) -> bool:
        """Return whether the run has a running supervisor, even if no worker can answer for it."""
        try:
            description = await self.client.get_workflow_handle(make_workflow_id(order)).describe(
                rpc_timeout=RPC_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise _make_server_error(error) from error
        return description.status is WorkflowExecutionStatus.RUNNING

    async def wait_for_end(self, order: DriveOrder) -> DriveReport:
        """Wait for the supervisor to end and return its report."""
        handle = self.client.get_workflow_handle_for(RunSupervisor.run, make_workflow_id(order))
        try:
            return await handle.result()
        except WorkflowFailureError as error:
            raise PortError(f"the supervisor of run {order.run_id} did not finish: {error.cause}") from error

    async def register(self) -> tuple[str, ...]:
        """Register our search attributes on the server. Returns those that were new."""
        service, namespace = self.client.operator_service, self.client.namespace
        try:
            existing = await service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
            missing = tuple(name for name in ATTRIBUTES if name not in existing.custom_attributes)
            if missing:
                kinds = dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
                await service.add_search_attributes(
                    AddSearchAttributesRequest(namespace=namespace, search_attributes=kinds)
                )
        except RPCError as error:
            raise _make_server_error(error) from error
        return missing

    async def count_workers(self) -> dict[str, int]:
        """Count the workers of each pool that the server has seen in the last few minutes."""
        counts: dict[str, int] = {}
        for pool, queue in QUEUES.items():
            request = DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            )
            try:
                response = await self.client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
            except RPCError as error:
                raise _make_server_error(error) from error
            counts[pool] = len({poller.identity for poller in response.pollers})
        return counts

    async def promote(self, deployment: str, build: str) -> None:
        """Let this build finish what any build of the deployment began.

        Raises `ConfigError` if the server does not know a worker with that build yet.
        """
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace,
            deployment_name=deployment,
            build_id=build,
            ignore_missing_task_queues=True,
        )
        try:
            await self.client.workflow_service.set_worker_deployment_current_version(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
                raise ConfigError(
                    f"the fleet has no worker of {deployment} {build}", remedy="start one first: redstart worker"
                ) from error
            raise _make_server_error(error) from error

    async def list_supervisors(self, tenant: str, limit: int = 100) -> Sequence[SupervisorInfo]:
        """List the tenant's running supervisors, newest first."""
        query = f"{ATTRIBUTES[0]} = '{tenant}' AND ExecutionStatus = 'Running'"
        supervisors: list[SupervisorInfo] = []
        try:
            async for workflow in self.client.list_workflows(query, limit=limit):
                attributes = workflow.typed_search_attributes
                _, repo, mode, outcome = (str(attributes.get(_make_attribute_key(name)) or "") for name in ATTRIBUTES)
                status = workflow.status.name.lower() if workflow.status else ""
                supervisors.append(SupervisorInfo(workflow.id.partition("/")[2], tenant, mode, repo, status, outcome))
        except RPCError as error:
            raise _make_server_error(error) from error
        return supervisors


async def connect(address: str, namespace: str) -> Client:
    """Connect to the server. Raises `PortError` if none responds at the address, or it lacks the namespace."""
    try:
        client = await Client.connect(address, namespace=namespace, connect_timeout=RPC_TIMEOUT)
        await client.count_workflows("ExecutionStatus = 'Running'", rpc_timeout=RPC_TIMEOUT)
    except (RPCError, RuntimeError) as error:
        raise _make_server_error(error, address) from error
    return client


def guess_first_privilege(state: RunState) -> str:
    """Return the privilege that the run most likely needs next."""
    step = route(state)
    return "act" if step is not None and step.value in ACTS_FIRST else "think"


def _make_attribute_key(name: str) -> SearchAttributeKey[str]:
    return SearchAttributeKey.for_keyword(name)


def _make_server_error(error: Exception, address: str = "") -> PortError:
    location = f" at {address}" if address else ""
    return PortError(
        f"the fleet's server{location} does not respond correctly: {error}", remedy="redstart fleet status"
    )

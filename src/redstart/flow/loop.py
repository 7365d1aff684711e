"""The reference loop. Every other engine must give the same result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from pydantic import BaseModel

from redstart.core.run import RunState, Step
from redstart.core.run_status import HaltReason
from redstart.flow.route import route
from redstart.ports.bundle import Ports
from redstart.steps import apply, audit, check, decide, patch, plan, reflect, remember, reproduce, retrieve, test

StepFunction = Callable[[RunState, Ports], Awaitable[BaseModel]]

STEPS: Mapping[Step, StepFunction] = {
    Step.reproduce: reproduce.reproduce,
    Step.plan: plan.plan,
    Step.retrieve: retrieve.retrieve,
    Step.audit: audit.audit,
    Step.patch: patch.patch,
    Step.apply: apply.apply,
    Step.check: check.check,
    Step.test: test.test,
    Step.reflect: reflect.reflect,
    Step.remember: remember.remember,
    Step.decide: decide.decide,
}


class StepAdvance(NamedTuple):
    """The state after a step, and the reason to halt there, if any."""

    state: RunState
    halt: HaltReason = HaltReason.none


class Advance(Protocol):
    async def __call__(self, state: RunState, step: Step) -> StepAdvance:
        """Execute one step and commit it."""
        ...


async def run_loop(state: RunState, advance: Advance) -> StepAdvance:
    """Execute steps until the run ends, waits, or is told to halt."""
    result = StepAdvance(state)
    while not result.halt and (step := route(result.state)) is not None:
        result = await advance(result.state, step)
    return result

"""The table of steps as a LangGraph `StateGraph`, whose nodes take and return JSON.

It needs no checkpointer: each node commits to the run store, and the graph can be entered at any step.
"""

# LangGraph's annotations are incomplete; values that cross into our code are checked when they are validated.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, NotRequired, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langsmith import tracing_context

from redstart.core.run import RunState, Step
from redstart.core.run_status import HaltReason
from redstart.flow.edges import LEADS_TO
from redstart.flow.loop import Advance, StepAdvance
from redstart.flow.route import route

STEPS_AT_MOST = 100_000
"""LangGraph requires a limit; ours are in the run's limits."""


class GraphState(TypedDict):
    """The state that passes along the edges. `then` is the next node; it is not needed to enter the graph."""

    run: dict[str, Any]
    halt: str
    then: NotRequired[str]


_advance: ContextVar[Advance] = ContextVar("advance")


async def run_langgraph(state: RunState, advance: Advance) -> StepAdvance:
    flow = GraphState(run=state.model_dump(mode="json"), halt="")
    token = _advance.set(advance)
    try:
        # A tracing variable in the user's shell must not send a repo's text to a third party.
        with tracing_context(enabled=False):
            result = await _compile_graph().ainvoke(flow, {"recursion_limit": STEPS_AT_MOST})
    finally:
        _advance.reset(token)
    return StepAdvance(RunState.model_validate(result["run"]), HaltReason(result["halt"]))


@cache
def _compile_graph() -> CompiledStateGraph[GraphState]:
    """Compile the graph once: that takes as long as dozens of steps, and a fleet worker enters the graph many times
    per run.

    The nodes call the driver that entered the graph.
    """

    async def advance_by_driver(state: RunState, step: Step) -> StepAdvance:
        return await _advance.get()(state, step)

    return build(advance_by_driver).compile()


def build(advance: Advance) -> StateGraph[GraphState]:
    """Build the graph without compiling it: an embedding application may still add a checkpointer."""
    graph = StateGraph(GraphState)
    for step in Step:
        graph.add_node(step.value, _create_node(step, advance))
        graph.add_conditional_edges(step.value, _route_next, [*(lead.value for lead in LEADS_TO[step]), END])
    graph.add_conditional_edges(START, _route_entry, [*(step.value for step in Step), END])
    return graph


def _create_node(step: Step, advance: Advance) -> Callable[[GraphState], Awaitable[GraphState]]:
    async def run_node(flow: GraphState) -> GraphState:
        result = await advance(RunState.model_validate(flow["run"]), step)
        next_node = END if result.halt else _find_next_node(result.state)
        return GraphState(run=result.state.model_dump(mode="json"), halt=result.halt.value, then=next_node)

    return run_node


def _find_next_node(state: RunState) -> str:
    step = route(state)
    return step.value if step else cast(str, END)


# LangGraph runs a router that is a plain function in a thread, which costs as much as the rest of its work for a step.
async def _route_entry(flow: GraphState) -> str:
    return _find_next_node(RunState.model_validate(flow["run"]))


async def _route_next(flow: GraphState) -> str:
    return flow.get("then", cast(str, END))

"""The same table of steps as a LangGraph `StateGraph`; nodes get and give JSON.

It needs no checkpointer: each node commits to the run store, and the graph is entered at whatever step comes next.
"""

# LangGraph's own annotations are incomplete; what crosses into our code is checked where it is validated.
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
from redstart.core.standing import HaltReason
from redstart.flow.edges import LEADS_TO
from redstart.flow.loop import Advance, StepAdvance
from redstart.flow.route import route

STEPS_AT_MOST = 100_000
"""LangGraph wants a bound; ours are in the run's own limits."""


class GraphState(TypedDict):
    """What passes along the edges. `then` is where to go on; who enters the graph need not say."""

    run: dict[str, Any]
    halt: str
    then: NotRequired[str]


_advance: ContextVar[Advance] = ContextVar("advance")


async def langgraph(state: RunState, advance: Advance) -> StepAdvance:
    flow = GraphState(run=state.model_dump(mode="json"), halt="")
    token = _advance.set(advance)
    try:
        # A tracing variable in the user's shell must not send a repo's text to a third party.
        with tracing_context(enabled=False):
            done = await _compiled().ainvoke(flow, {"recursion_limit": STEPS_AT_MOST})
    finally:
        _advance.reset(token)
    return StepAdvance(RunState.model_validate(done["run"]), HaltReason(done["halt"]))


@cache
def _compiled() -> CompiledStateGraph[GraphState]:
    """Compiled once: that takes as long as dozens of steps, and a worker of a fleet enters the graph many times a run.

    Its nodes ask the driver that entered it.
    """

    async def by_driver(state: RunState, step: Step) -> StepAdvance:
        return await _advance.get()(state, step)

    return build(by_driver).compile()


def build(advance: Advance) -> StateGraph[GraphState]:
    """The graph, not yet compiled: whoever embeds it may still give it a checkpointer."""
    graph = StateGraph(GraphState)
    for step in Step:
        graph.add_node(step.value, _node(step, advance))
        graph.add_conditional_edges(step.value, _where, [*(lead.value for lead in LEADS_TO[step]), END])
    graph.add_conditional_edges(START, _entry, [*(step.value for step in Step), END])
    return graph


def _node(step: Step, advance: Advance) -> Callable[[GraphState], Awaitable[GraphState]]:
    async def node(flow: GraphState) -> GraphState:
        done = await advance(RunState.model_validate(flow["run"]), step)
        then = END if done.halt else _following(done.state)
        return GraphState(run=done.state.model_dump(mode="json"), halt=done.halt.value, then=then)

    return node


def _following(state: RunState) -> str:
    step = route(state)
    return step.value if step else cast(str, END)


# LangGraph hands a router that is a plain function to a thread, which costs as much as all else it does for a step.
async def _entry(flow: GraphState) -> str:
    return _following(RunState.model_validate(flow["run"]))


async def _where(flow: GraphState) -> str:
    return flow.get("then", cast(str, END))

"""Faulty endpoints over real HTTP on this machine: 12 faults x 2 wires x a plain question and one with tools.

`right_class` counts the cases that end with the correct error or the correct fault of an answer. `silent` counts those
taken for a good answer. `late` counts those that end later than their deadline plus the time of a good answer on this
machine plus one second. Each case is one call through the adapter and one through the gateway, which must ask again and
return the good answer (`recovered`), or return the cut answer as cut.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from collections import Counter
from typing import NamedTuple

import _paths  # noqa: F401
from _figures import expect_equal, print_figures
from redstart.core.chat import Answer, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.core.errors import ModelError
from redstart.ports.model.gateway import Gateway, RetryPolicy, TimeAndChance
from redstart.ports.model.port import Model
from redstart.ports.model.providers import connect
from redstart.ports.model.routes import ModelRoute
from support.faults import FAULTS, RETRY_AFTER
from support.server import Reply, Request, ScriptedServer, Wire

NAMES = {Wire.openai: "openai:gpt-4o", Wire.anthropic: "anthropic:claude-sonnet-4-6"}
PATIENT = 30.0
READ = Tool(name="read", description="Lines of a file.", parameters={"type": "object", "properties": {}})
PLAIN = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="Why is it red?"),))
CALL = ToolCall(id="call_1", name="read", arguments='{"path": "shop/cart.py", "from": 1, "to": 80}')
MODES = {
    "plain": (PLAIN, Reply("It is off by one." * 5)),
    "tools": (PLAIN.model_copy(update={"tools": (READ,)}), Reply(calls=(CALL,))),
}


class Outcome(NamedTuple):
    right: bool
    silent: bool
    late: bool
    recovered: bool
    said: str


class Endpoint:
    """The script of the server. The text of a question says which fault it must meet, and how often."""

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        good_reply = MODES["tools" if request.tools else "plain"][1]
        name, _, frequency = request.messages[-1][1].partition(" / ")
        with self._lock:
            self._met[request.text] += 1
            is_first = self._met[request.text] == 1
        return (
            FAULTS[name].spoil(request, good_reply)
            if name in FAULTS and (frequency == "always" or is_first)
            else good_reply
        )


class Case(NamedTuple):
    wire: Wire
    mode: str
    fault: str

    def ask(self, frequency: str) -> Ask:
        # The wire and mode make each question unique, so that each one meets its fault.
        text = (
            f"{self.fault} / {frequency}"
            if frequency == "always"
            else f"{self.fault} / {frequency} on {self.wire} with {self.mode}"
        )
        return MODES[self.mode][0].model_copy(update={"messages": (Message(role=Role.user, text=text),)})


async def measure_call(model: Model, ask: Ask) -> tuple[Answer | ModelError, float]:
    began = time.monotonic()
    try:
        return await model.ask(ask), time.monotonic() - began
    except ModelError as error:
        return error, time.monotonic() - began


async def skip_wait(_: float) -> None:
    """Skip the waits between calls: they are tested elsewhere."""


def create_gateway(model: Model) -> Gateway:
    route = ModelRoute("bench:model", model)
    return Gateway(lambda _: [route], RetryPolicy(max_calls=3), TimeAndChance(sleep=skip_wait))


async def run_case(case: Case, model: Model, bound: float, usual_seconds: float) -> Outcome:
    fault = FAULTS[case.fault]
    answer, seconds = await measure_call(model, case.ask("always"))
    gateway_answer, _ = await measure_call(create_gateway(model), case.ask("once"))
    is_late = seconds > bound + usual_seconds + 1.0
    if isinstance(answer, Answer):
        recovered = isinstance(gateway_answer, Answer) and gateway_answer.fault is fault.means
        return Outcome(
            answer.fault is fault.means, answer.fault is None, is_late, recovered, f"an answer, {answer.fault}"
        )
    is_right = type(answer) is fault.means and (case.fault != "429" or answer.retry_after == RETRY_AFTER)
    recovered = (
        isinstance(gateway_answer, Answer)
        and gateway_answer.fault is None
        and (gateway_answer.text, gateway_answer.calls) != ("", ())
    )
    return Outcome(is_right, False, is_late, recovered, f"{type(answer).__name__}: {answer}")


async def run_matrix(server: ScriptedServer, deadline: float) -> dict[Case, Outcome]:
    outcomes: dict[Case, Outcome] = {}
    for wire in Wire:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        hasty, patient = (
            connect(NAMES[wire], base_url=url, api_key="key", deadline=limit) for limit in (deadline, PATIENT)
        )
        for model in (hasty, patient):
            await measure_call(model, PLAIN)  # loads the SDK
        answer, usual_seconds = await measure_call(patient, PLAIN)
        assert isinstance(answer, Answer), answer
        cases = [Case(wire, mode, fault) for mode in MODES for fault in FAULTS]
        slow_cases = [case for case in cases if FAULTS[case.fault].slow]
        slow_outcomes = await asyncio.gather(*(run_case(case, hasty, deadline, usual_seconds) for case in slow_cases))
        outcomes |= dict(zip(slow_cases, slow_outcomes, strict=True))
        for case in cases:
            if case not in outcomes:
                outcomes[case] = await run_case(case, patient, PATIENT, usual_seconds)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same 48 with a shorter deadline")
    deadline = 1.0 if parser.parse_args().quick else 3.0
    with ScriptedServer(Endpoint()) as server:
        outcomes = asyncio.run(run_matrix(server, deadline))
    for case, outcome in outcomes.items():
        verdict = "right" if outcome.right and outcome.recovered and not outcome.late else "WRONG"
        print(f"{case.wire.value:<10}{case.mode:<7}{case.fault:<20}{verdict:<7}{outcome.said[:110]}")
    total, results = len(outcomes), outcomes.values()
    figures = [
        expect_equal("right_class", sum(result.right for result in results), total),
        expect_equal("silent", sum(result.silent for result in results), 0),
        expect_equal("late", sum(result.late for result in results), 0),
        expect_equal("recovered", sum(result.recovered for result in results), total),
    ]
    return 0 if print_figures("model_faults", figures) else 1


if __name__ == "__main__":
    sys.exit(main())

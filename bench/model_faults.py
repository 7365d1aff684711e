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
from _figures import exactly, print_figures
from redstart.core.chat import Answer, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.core.errors import ModelError
from redstart.ports.model.gateway import Gateway, RetryPolicy, TimeAndChance
from redstart.ports.model.lanes import ModelRoute
from redstart.ports.model.port import Model
from redstart.ports.model.providers import connect
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
        good = MODES["tools" if request.tools else "plain"][1]
        name, _, how = request.messages[-1][1].partition(" / ")
        with self._lock:
            self._met[request.text] += 1
            first = self._met[request.text] == 1
        return FAULTS[name].spoil(request, good) if name in FAULTS and (how == "always" or first) else good


class Case(NamedTuple):
    wire: Wire
    mode: str
    fault: str

    def ask(self, how: str) -> Ask:
        # The wire and mode make each question unique, so that each one meets its fault.
        text = f"{self.fault} / {how}" if how == "always" else f"{self.fault} / {how} on {self.wire} with {self.mode}"
        return MODES[self.mode][0].model_copy(update={"messages": (Message(role=Role.user, text=text),)})


async def timed(model: Model, ask: Ask) -> tuple[Answer | ModelError, float]:
    began = time.monotonic()
    try:
        return await model.ask(ask), time.monotonic() - began
    except ModelError as error:
        return error, time.monotonic() - began


async def no_wait(_: float) -> None:
    """Skip the waits between calls: they are tested elsewhere."""


def again(model: Model) -> Gateway:
    lane = ModelRoute("bench:model", model)
    return Gateway(lambda _: [lane], RetryPolicy(tries=3), TimeAndChance(sleep=no_wait))


async def tried(case: Case, model: Model, bound: float, usual: float) -> Outcome:
    fault = FAULTS[case.fault]
    got, seconds = await timed(model, case.ask("always"))
    home, _ = await timed(again(model), case.ask("once"))
    late = seconds > bound + usual + 1.0
    if isinstance(got, Answer):
        recovered = isinstance(home, Answer) and home.fault is fault.means
        return Outcome(got.fault is fault.means, got.fault is None, late, recovered, f"an answer, {got.fault}")
    right = type(got) is fault.means and (case.fault != "429" or got.retry_after == RETRY_AFTER)
    recovered = isinstance(home, Answer) and home.fault is None and (home.text, home.calls) != ("", ())
    return Outcome(right, False, late, recovered, f"{type(got).__name__}: {got}")


async def matrix(server: ScriptedServer, deadline: float) -> dict[Case, Outcome]:
    outcomes: dict[Case, Outcome] = {}
    for wire in Wire:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        hasty, patient = (connect(NAMES[wire], base_url=url, api_key="key", deadline=at) for at in (deadline, PATIENT))
        for model in (hasty, patient):
            await timed(model, PLAIN)  # loads the SDK
        answer, usual = await timed(patient, PLAIN)
        assert isinstance(answer, Answer), answer
        cases = [Case(wire, mode, fault) for mode in MODES for fault in FAULTS]
        slow = [case for case in cases if FAULTS[case.fault].slow]
        found = await asyncio.gather(*(tried(case, hasty, deadline, usual) for case in slow))
        outcomes |= dict(zip(slow, found, strict=True))
        for case in cases:
            if case not in outcomes:
                outcomes[case] = await tried(case, patient, PATIENT, usual)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same 48 with a shorter deadline")
    deadline = 1.0 if parser.parse_args().quick else 3.0
    with ScriptedServer(Endpoint()) as server:
        outcomes = asyncio.run(matrix(server, deadline))
    for case, outcome in outcomes.items():
        verdict = "right" if outcome.right and outcome.recovered and not outcome.late else "WRONG"
        print(f"{case.wire.value:<10}{case.mode:<7}{case.fault:<20}{verdict:<7}{outcome.said[:110]}")
    every, results = len(outcomes), outcomes.values()
    figures = [
        exactly("right_class", sum(result.right for result in results), every),
        exactly("silent", sum(result.silent for result in results), 0),
        exactly("late", sum(result.late for result in results), 0),
        exactly("recovered", sum(result.recovered for result in results), every),
    ]
    return 0 if print_figures("model_faults", figures) else 1


if __name__ == "__main__":
    sys.exit(main())

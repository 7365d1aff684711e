"""Is a patch that failed before shown to a model that would repeat it?

Two runs of `fix` on the rig meet each of ten bugs, one after the other with the same memory. The first run gives a
patch that fails, and ends. The second run would give the same patch; it gives the true fix only if its question shows
that patch as tried before and failed. As a control, the second run has an empty memory. The figures say nothing about a
model: they say that a failed attempt is stored, found by its failure, and shown. `--quick` does the same.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import _paths  # noqa: F401
from _figures import Figure, expect_equal, print_figures, report_value
from redstart.core.chat import Ask
from redstart.core.run import Limits, Result, RunState
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.evals.runner import EmptyMemory
from support import rig as play
from support.rig import Rig, make_rig

RUNS = 10
ONE = Limits(attempts=1, tokens=None, usd=None)
LINE = "    return number + number + 1"
TITLE = "## Tried before and failed"


def build_failed_line(number: int) -> str:
    return f"    return number + {number + 60}"


def create_repeating_reply(number: int) -> Callable[[Ask], str]:
    """Return a reply that gives the patch known to fail, unless the question shows that it failed."""

    def reply(ask: Ask) -> str:
        if ask.question != "patch":
            return play.CARD
        prompt = "\n".join(message.text for message in ask.messages)
        is_shown = TITLE in prompt and f"+{build_failed_line(number)}" in prompt.partition(TITLE)[2]
        return play.RIGHT if is_shown else play.block(LINE, build_failed_line(number))

    return reply


async def run_fix(rig: Rig, number: int) -> RunState:
    rig.with_model(create_repeating_reply(number))
    claim = await rig.adapters.store.claim(await rig.begin(limits=ONE))
    return (await drive(rig.adapters, claim, run_inline)).state


async def pair(rig: Rig, number: int, *, has_memory: bool) -> bool:
    """Return whether the second run avoids the patch that failed in the first, and ends verified."""
    rig = rig.twin()
    first_state = await run_fix(rig, number)
    if first_state.result is Result.verified:
        raise RuntimeError("the first run should have failed")
    if not has_memory:
        rig.adapters = replace(rig.adapters, memory=EmptyMemory())
    return (await run_fix(rig, number)).result is Result.verified


def measure(rig: Rig, runs: int = RUNS) -> list[Figure]:
    avoided = sum(asyncio.run(pair(rig, number, has_memory=True)) for number in range(runs))
    avoided_without_memory = sum(asyncio.run(pair(rig, number, has_memory=False)) for number in range(runs))
    return [
        expect_equal("avoided", avoided, runs),
        expect_equal("avoided_without_memory", avoided_without_memory, 0),
        report_value("runs", runs),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rig = make_rig(Path(folder) / "snapshots")
        try:
            figures = measure(rig)
        finally:
            rig.trees.close()
    print_figures("failures", figures)


if __name__ == "__main__":
    main()

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
from _figures import Figure, exactly, print_figures, told
from redstart.core.chat import Ask
from redstart.core.run import Limits, Result, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.evals.runner import EmptyMemory
from support import rig as play
from support.rig import Rig, make_rig

RUNS = 10
ONE = Limits(attempts=1, tokens=None, usd=None)
LINE = "    return number + number + 1"
TITLE = "## Tried before and failed"


def known_failed(number: int) -> str:
    return f"    return number + {number + 60}"


def repeating(number: int) -> Callable[[Ask], str]:
    """Return a reply that gives the patch known to fail, unless the question shows that it failed."""

    def reply(ask: Ask) -> str:
        if ask.question != "patch":
            return play.CARD
        prompt = "\n".join(message.text for message in ask.messages)
        shown = TITLE in prompt and f"+{known_failed(number)}" in prompt.partition(TITLE)[2]
        return play.RIGHT if shown else play.block(LINE, known_failed(number))

    return reply


async def ran(rig: Rig, number: int) -> RunState:
    rig.with_model(repeating(number))
    claim = await rig.adapters.store.claim(await rig.begin(limits=ONE))
    return (await drive(rig.adapters, claim, inline)).state


async def pair(rig: Rig, number: int, *, remembers: bool) -> bool:
    """Return whether the second run avoids the patch that failed in the first, and ends verified."""
    rig = rig.twin()
    first = await ran(rig, number)
    if first.result is Result.verified:
        raise RuntimeError("the first run should have failed")
    if not remembers:
        rig.adapters = replace(rig.adapters, memory=EmptyMemory())
    return (await ran(rig, number)).result is Result.verified


def measure(rig: Rig, runs: int = RUNS) -> list[Figure]:
    avoided = sum(asyncio.run(pair(rig, number, remembers=True)) for number in range(runs))
    without = sum(asyncio.run(pair(rig, number, remembers=False)) for number in range(runs))
    return [
        exactly("avoided", avoided, runs),
        exactly("avoided_without_memory", without, 0),
        told("runs", runs),
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

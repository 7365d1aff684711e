"""The graph as other programs may embed it: with a checkpointer and LangGraph's strict serialization."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HARNESS = Path(__file__).parents[2]
EMBEDDED = """
import asyncio, sys, tempfile, warnings
from pathlib import Path

warnings.simplefilter("error")
from langgraph.checkpoint.memory import InMemorySaver
from redstart.core.run import Result, RunState
from redstart.engines.step_driver import RunDriver
from redstart.engines.langgraph import GraphState, build
from support import rig as play

async def main():
    with tempfile.TemporaryDirectory() as folder:
        rig = play.make_rig(Path(folder))
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        claim = await rig.adapters.store.claim(await rig.begin())
        saver = InMemorySaver()
        graph = build(RunDriver(rig.adapters, claim.fence).advance).compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": 1000}
        done = await graph.ainvoke(GraphState(run=claim.state.model_dump(mode="json"), halt=""), config)
        assert RunState.model_validate(done["run"]).result is Result.verified
        kept = [checkpoint async for checkpoint in saver.alist(config)]
        assert RunState.model_validate(kept[0].checkpoint["channel_values"]["run"]).result is Result.verified
        print(len(kept), "checkpoints")
        rig.trees.close()

asyncio.run(main())
"""


def test_engine_runs_clean_with_a_checkpointer_and_strict_msgpack():
    environ = {"LANGGRAPH_STRICT_MSGPACK": "true", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(HARNESS)}
    completed = subprocess.run(
        [sys.executable, "-c", EMBEDDED], env=environ, capture_output=True, text=True, timeout=120
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "checkpoints" in completed.stdout

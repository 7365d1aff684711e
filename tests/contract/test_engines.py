from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.engines.inline import run_inline
from redstart.engines.langgraph import run_langgraph
from redstart.engines.port import Engine
from support.engine_contract import EngineContract
from support.rig import Keep, Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path, keep: Keep) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path / "snapshots", keep)
    yield new_rig
    new_rig.trees.close()


class TestInline(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return run_inline


class TestLangGraph(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return run_langgraph

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.engines.inline import inline
from redstart.engines.langgraph import langgraph
from redstart.engines.port import Engine
from support.engine_contract import EngineContract
from support.rig import Keep, Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path, keep: Keep) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots", keep)
    yield made
    made.trees.close()


class TestInline(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return inline


class TestLangGraph(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return langgraph

"""Suites that depend on plugins: an honest fix of each is accepted, and no cheat is.

Each file of `plugin_heavy/` is one project: its files, a real fix, and cheats. The model is scripted; the loop, the
store, the sandbox, pytest with its plugins and the verdict are real.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from redstart.app.runs import RunRequest, create_fix_run, go_on
from redstart.app.settings import Models, Settings
from redstart.app.wire import AppContext, load_engine, open_app
from redstart.core.chat import Ask
from redstart.core.run import Level, Limits, Result, RunState
from redstart.testing.model import ScriptedModel
from support.sample import sample_parameters
from support.scenarios import CARD

MODEL = "openai:obedient"
NEEDED = """
    pytest>=8.4,<9
    django pytest-django pytest-asyncio pytest-xdist pytest-cov pytest-randomly pytest-mock pytest-benchmark
    pytest-timeout pytest-subtests hypothesis pytest-bdd pytest-rerunfailures pytest-order pytest-forked
    pytest-env syrupy pyyaml
"""
"""Not all of these plugins support pytest 9 yet."""


class Config(NamedTuple):
    name: str
    files: Mapping[str, str]
    honest: Sequence[Mapping[str, str]]
    cheats: Mapping[str, Sequence[Mapping[str, str]]]

    def answer(self, edits: Sequence[Mapping[str, str]]) -> str:
        """Format the answer of a model that makes these edits."""
        for edit in edits:
            assert self.files[edit["path"]].count(edit["old"]) == 1, edit
        changed = {edit["path"]: self.files[edit["path"]] for edit in edits}
        for edit in edits:
            changed[edit["path"]] = changed[edit["path"]].replace(edit["old"], edit["new"])
        blocks = [
            f"{path}\n<<<<<<< SEARCH\n{self.files[path]}=======\n{text}>>>>>>> REPLACE\n"
            for path, text in changed.items()
        ]
        return "\n".join(("WHY: as it was told\n", *blocks))


def load(path: Path) -> Config:
    config_data = tomllib.loads(path.read_text())
    return Config(path.stem, config_data["files"], config_data["honest"], config_data["cheats"])


CONFIGS = [load(path) for path in sorted((Path(__file__).parent / "plugin_heavy").glob("*.toml"))]


CHEATS = [pytest.param(config, name, id=f"{config.name}-{name}") for config in CONFIGS for name in config.cheats]


@pytest.fixture(scope="module")
def python(new_environment: Callable[..., Path]) -> str:
    """Return the interpreter of an environment with all the plugins."""
    return str(new_environment(*NEEDED.split()) / "bin" / "python")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    settings = Settings(home=tmp_path_factory.mktemp("home"), models=Models(strong=MODEL, fast=MODEL))
    with open_app(settings) as app:
        yield app.with_sandbox()


@pytest.fixture
def played(
    house: AppContext, python: str, tmp_path: Path
) -> Callable[[Config, Sequence[Mapping[str, str]], Level], RunState]:
    """Return a function that runs edits as the only attempt of a run, to its end."""

    def play(config: Config, edits: Sequence[Mapping[str, str]], level: Level) -> RunState:
        root = tmp_path / "project"
        for path, text in config.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        answer = config.answer(edits)

        def reply(ask: Ask) -> str:
            return {"patch": answer, "plan": '{"summary": "do it", "subtasks": []}'}.get(ask.question, CARD)

        async def run() -> RunState:
            model_app = house.with_model(ScriptedModel(reply))
            run_request = RunRequest(Limits(attempts=1), python=python, verify=level)
            state = await create_fix_run(model_app, root, run_request)
            return (await go_on(model_app, state.run_id, load_engine("inline"))).state

        return asyncio.run(run())

    return play


def describe_run(state: RunState) -> dict[str, Any]:
    """Return the details of a run for a failed assertion."""
    attempt = state.now
    return {
        "reason": state.reason,
        "targets": attempt.reproduce.targets.first if attempt.reproduce else (),
        "trouble": attempt.reproduce.trouble if attempt.reproduce else "",
        "flaky": attempt.reproduce.flaky if attempt.reproduce else (),
        "apply": attempt.apply.rejects if attempt.apply else (),
        "check": [finding.message for finding in attempt.check.first] if attempt.check else (),
        "verdict": attempt.test.verdict if attempt.test else None,
    }


def test_there_are_enough_projects():
    assert len(CONFIGS) >= 15
    assert all(config.cheats and config.honest for config in CONFIGS)


@pytest.mark.parametrize("config", sample_parameters(CONFIGS, 1), ids=lambda config: config.name)
def test_honest_fix_is_accepted(config, played):
    state = played(config, config.honest, Level.standard)
    assert state.result is Result.verified, describe_run(state)


@pytest.mark.parametrize(("config", "name"), sample_parameters(CHEATS, 2))
def test_cheat_is_not_accepted(config, name, played):
    state = played(config, config.cheats[name], Level.quick)
    assert state.now.reproduce is not None
    assert state.now.reproduce.targets.count, describe_run(state)
    assert state.result in (Result.needs_human, Result.unsolved, Result.refused), describe_run(state)

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Tier, Usage
from redstart.core.errors import ConfigError, ModelError
from redstart.ports.model.replay import Cassette, ReplayModel


def ask(site: str) -> Ask:
    return Ask(question="patch", tier=Tier.strong, messages=(), site=site)


WRITTEN = {
    "model": "openai:gpt-5",
    "calls": {
        "1/patch/0": {"text": "first", "input_tokens": 10, "output_tokens": 5, "usd": 0.01},
        "2/patch/0": {"text": "second", "input_tokens": 20, "output_tokens": 6, "usd": 0.02},
    },
}


def test_handwritten_file_is_replayed_by_site(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text(json.dumps({"v": 1, **WRITTEN}))
    replay = ReplayModel(Cassette.load(path))
    answers = [asyncio.run(replay.ask(ask(site))) for site in ("2/patch/0", "1/patch/0", "2/patch/0")]
    assert [answer.text for answer in answers] == ["second", "first", "second"]
    assert {answer.model for answer in answers} == {"openai:gpt-5"}
    assert all(answer.usage == Usage() for answer in answers)


def test_unrecorded_call_is_named() -> None:
    replay = ReplayModel(Cassette.model_validate(WRITTEN))
    with pytest.raises(ModelError, match=r"1/patch/1"):
        asyncio.run(replay.ask(ask("1/patch/1")))
    with pytest.raises(ModelError, match="without a site"):
        asyncio.run(replay.ask(ask("")))


def test_saved_cassette_can_be_loaded_back(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    cassette = Cassette(model="openai:local").with_call(
        "1/plan/0",
        Answer(
            text="naïve\n",
            model="openai:local",
            usage=Usage(input_tokens=3, output_tokens=2, usd=None),
            fault=AnswerFault.truncated,
        ),
    )
    cassette.save(path)
    assert Cassette.load(path) == cassette
    assert asyncio.run(ReplayModel(cassette).ask(ask("1/plan/0"))).fault is AnswerFault.truncated
    assert "naïve" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_text()) == {
        "v": 3,
        "model": "openai:local",
        "calls": {"1/plan/0": {"text": ["naïve", ""], "input_tokens": 3, "output_tokens": 2, "fault": "truncated"}},
    }


def test_cassette_reports_the_cost_of_the_recording() -> None:
    cassette = Cassette.model_validate(WRITTEN)
    assert cassette.usage == Usage(input_tokens=30, output_tokens=11, usd=0.03)
    unpriced_cassette = cassette.with_call("3/patch/0", Answer(text="", model="", usage=Usage(usd=None)))
    assert unpriced_cassette.usage.usd is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not a recording"),
        ('{"v": 4, "model": "m"}', r"demo\.json: this recording was stored by a newer version"),
        ('{"v": 1, "model": "m", "calls": {"patch": {"text": ""}}}', "calls/patch"),
        ('{"v": 1, "model": "m", "calls": {"1/patch/0": {"txt": ""}}}', "calls/1/patch/0/text"),
    ],
)
def test_invalid_cassette_is_rejected(content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=complaint):
        Cassette.load(path)


def test_missing_cassette_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json cannot be read"):
        Cassette.load(tmp_path / "gone.json")

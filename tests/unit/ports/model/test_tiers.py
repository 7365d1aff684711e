from __future__ import annotations

import asyncio

import pytest

from redstart.core.chat import Ask, Tier
from redstart.core.errors import ConfigError
from redstart.ports.model.tiers import Tiers
from redstart.testing.model import ScriptedModel, ScriptEnded


def ask(tier: Tier) -> Ask:
    return Ask(question="patch", tier=tier, messages=())


def test_each_question_goes_to_the_model_of_its_tier() -> None:
    tiers = Tiers({Tier.fast: ScriptedModel(["quick"]), Tier.strong: ScriptedModel(["deep"])})
    assert asyncio.run(tiers.ask(ask(Tier.strong))).text == "deep"
    assert asyncio.run(tiers.ask(ask(Tier.fast))).text == "quick"


def test_a_tier_without_a_model_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="fast"):
        Tiers({Tier.strong: ScriptedModel([])})


def test_a_script_that_ran_out_says_which_call_was_too_many() -> None:
    model = ScriptedModel(["one"])
    asyncio.run(model.ask(ask(Tier.fast)))
    with pytest.raises(ScriptEnded, match="1 answers; call 2 was patch"):
        asyncio.run(model.ask(ask(Tier.fast)))
    assert [asked.tier for asked in model.asks] == [Tier.fast, Tier.fast]

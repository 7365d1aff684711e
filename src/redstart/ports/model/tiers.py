"""Two models behind one port: the question says which tier it is for."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.chat import Answer, Ask, Tier
from redstart.core.errors import ConfigError
from redstart.ports.model.port import Model


class Tiers:
    """Sends each question to the model of its tier; both tiers may be the same model.

    Raises `ConfigError` when it is made without a model for every tier, not in the middle of a run.
    """

    def __init__(self, models: Mapping[Tier, Model]) -> None:
        if missing := [tier for tier in Tier if tier not in models]:
            raise ConfigError(f"no model is set for the tier {' and '.join(missing)}")
        self._models = dict(models)

    async def ask(self, ask: Ask) -> Answer:
        return await self._models[ask.tier].ask(ask)

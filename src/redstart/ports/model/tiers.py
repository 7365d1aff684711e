"""Choose the model and the fallbacks for a question, and load model profiles from `profiles.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from redstart.core.chat import Ask, Tier
from redstart.ports.model.port import Profile

ESCALATED = frozenset({"plan", "reproduce", "patch", "reflect"})
"""The questions whose answers decide whether an attempt succeeds. All others stay with the fast model."""


class ModelRoster(NamedTuple):
    """The names (`provider:model`) of the models in use."""

    fast: str
    strong: str
    fallback: Sequence[str] = ()
    """Models to ask, in this order, if the chosen model gives no answer."""
    steps: Mapping[str, str] = {}
    """Maps a question to `fast`, `strong` or a model's name."""
    escalate: int = 2
    """The number of attempts for which the fast model is asked; after them the strong one is. 0 means no limit."""

    @property
    def names(self) -> list[str]:
        """The names of all models, each once."""
        step_models = [name for name in self.steps.values() if name not in tuple(Tier)]
        return list(dict.fromkeys([self.strong, self.fast, *step_models, *self.fallback]))

    def get_default_model(self, question: str, tier: Tier) -> str:
        """Return the model that a question of this tier goes to in the first attempt."""
        choice = self.steps.get(question) or tier.value
        return {Tier.fast.value: self.fast, Tier.strong.value: self.strong}.get(choice, choice)

    def choose_models(self, ask: Ask) -> list[str]:
        """Return the model that the question goes to, followed by its fallbacks."""
        name = self.get_default_model(ask.question, ask.tier)
        if self._is_stuck(ask):
            name = self.get_stronger_model(ask.question, ask.tier) or name
        return list(dict.fromkeys([name, *self.fallback]))

    def get_stronger_model(self, question: str, tier: Tier) -> str:
        """Return the stronger model for a stuck question, or "" if there is none or the user named a model."""
        is_fast = (self.steps.get(question) or tier) == Tier.fast
        return self.strong if is_fast and self.strong != self.fast else ""

    def _is_stuck(self, ask: Ask) -> bool:
        """Return whether the question says that it is stuck, or the fast model has used up its attempts."""
        if ask.stuck:
            return ask.question in ESCALATED
        attempt = ask.site.partition("/")[0]
        return bool(self.escalate) and ask.question in ESCALATED and attempt.isdigit() and int(attempt) > self.escalate


_SHIPPED = Path(__file__).with_name("profiles.toml")


def get_profile(model: str, overrides: Mapping[str, Profile] | None = None) -> Profile:
    """Return the profile of `provider:name`. Fields set in `overrides` win; its keys are patterns, as in the file."""
    profile = Profile()
    for table in (load_shipped_profiles(), overrides or {}):
        # An exact name may be shorter than a pattern that also matches it.
        fitting = [key for key in table if key == model or fnmatchcase(model.lower(), key.lower())]
        for key in sorted(fitting, key=lambda key: (key == model, len(key))):
            override = table[key]
            profile = profile.model_copy(update={name: getattr(override, name) for name in override.model_fields_set})
    return profile


@cache
def load_shipped_profiles() -> Mapping[str, Profile]:
    """Load the profiles that come with the package, by pattern."""
    tables = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))
    return {key: Profile.model_validate(table) for key, table in tables.items()}

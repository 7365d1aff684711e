"""Which model a question goes to and who comes after it; what is known of each, as data (`profiles.toml`)."""

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
"""The questions whose answers decide whether an attempt succeeds. The others stay with the fast model."""


class ModelRoster(NamedTuple):
    """The names (`provider:model`) of the models in use."""

    fast: str
    strong: str
    fallback: Sequence[str] = ()
    """Asked in this order where the chosen model gives no answer."""
    steps: Mapping[str, str] = {}
    """Question to `fast`, `strong` or a model's name."""
    escalate: int = 2
    """Attempts that the fast model has at a question; from the next on the strong one is asked. 0 for no end."""

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        own = [name for name in self.steps.values() if name not in tuple(Tier)]
        return list(dict.fromkeys([self.strong, self.fast, *own, *self.fallback]))

    def usual(self, question: str, tier: Tier) -> str:
        """Whom a question of this tier goes to in the first attempt."""
        chosen = self.steps.get(question) or tier.value
        return {Tier.fast.value: self.fast, Tier.strong.value: self.strong}.get(chosen, chosen)

    def chosen(self, ask: Ask) -> list[str]:
        """Whom the question goes to, and who comes after it."""
        name = self.usual(ask.question, ask.tier)
        if self._stuck(ask):
            name = self.stronger(ask.question, ask.tier) or name
        return list(dict.fromkeys([name, *self.fallback]))

    def stronger(self, question: str, tier: Tier) -> str:
        """Whom it can go to instead where an attempt was not enough; empty where there is nobody, or one was named."""
        is_fast = (self.steps.get(question) or tier) == Tier.fast
        return self.strong if is_fast and self.strong != self.fast else ""

    def _stuck(self, ask: Ask) -> bool:
        """Whether it says so, or the attempts before it, all of which failed, were as many as the fast model has."""
        if ask.stuck:
            return ask.question in ESCALATED
        attempt = ask.site.partition("/")[0]
        return bool(self.escalate) and ask.question in ESCALATED and attempt.isdigit() and int(attempt) > self.escalate


_SHIPPED = Path(__file__).with_name("profiles.toml")


def profile_of(model: str, over: Mapping[str, Profile] | None = None) -> Profile:
    """The profile of `provider:name`. Of `over` only the fields count that were set; its keys are as in the file."""
    profile = Profile()
    for table in (shipped(), over or {}):
        # An exact name may be shorter than a pattern that fits it too.
        fitting = [key for key in table if key == model or fnmatchcase(model.lower(), key.lower())]
        for key in sorted(fitting, key=lambda key: (key == model, len(key))):
            said = table[key]
            profile = profile.model_copy(update={name: getattr(said, name) for name in said.model_fields_set})
    return profile


@cache
def shipped() -> Mapping[str, Profile]:
    """The profiles that come with the package, by their patterns."""
    tables = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))
    return {key: Profile.model_validate(table) for key, table in tables.items()}

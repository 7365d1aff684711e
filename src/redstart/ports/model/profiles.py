"""What is known of models, shipped as data (`profiles.toml`) and overridden by the settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from redstart.ports.model.port import Profile

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

"""Names for models and sandboxes that are objects of a Python program: a run stores the name, never the object."""

from __future__ import annotations

from redstart.core.errors import ConfigError

PREFIX = "python:"


def format_object_name(value: object) -> str:
    """Return the object's class as a run stores it: `python:MyModel`."""
    kind = value if isinstance(value, type) else type(value)
    return f"{PREFIX}{kind.__qualname__}"


def refuse_object_name(name: str, option: str) -> None:
    """Raise `ConfigError` for the name of an object: only the program that created the object can pass it."""
    if name.startswith(PREFIX):
        raise ConfigError(
            f"{name} is an object of a Python program and was not passed",
            remedy=f"pass it again in Python: redstart.resume(RUN_ID, {option}=…)",
        )

"""Reading JSON out of what a model wrote."""

from __future__ import annotations

import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Shape = TypeVar("Shape", bound=BaseModel)

_FENCE = re.compile(r"^```[\w-]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def read_json(text: str, shape: type[Shape]) -> Shape | None:
    """The first JSON object in `text` that has the shape, with or without fences and prose around it; else None."""
    for candidate in (*_FENCE.findall(text), text):
        for start in (place.start() for place in re.finditer(r"\{", candidate)):
            try:
                found, _ = json.JSONDecoder(strict=False).raw_decode(candidate, start)
                return shape.model_validate(found)
            except (ValueError, ValidationError):
                continue
    return None

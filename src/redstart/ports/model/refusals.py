"""What an endpoint says where it refuses a call, and what helps."""

from __future__ import annotations

from typing import cast


def may_pass(status: int) -> bool:
    """Whether an endpoint that refuses so may answer the same call a moment later."""
    return status in (408, 409, 425, 429) or status >= 500


def reason(body: object) -> str:
    """The endpoint's own words, wherever in the body of its refusal they stand."""
    for key in ("error", "message"):
        if isinstance(body, dict):
            body = cast("dict[str, object]", body).get(key, cast("object", body))
    return "" if body is None else str(body)


def remedy(status: int, variable: str, retry_after: float | None = None) -> str:
    """What to do about it; `variable` is where the key came from."""
    if status in (401, 403):
        return f"check the key in {variable}" if variable else "check the key"
    if status == 404:
        return "check the model's name and address"
    if status == 429:
        wait = "" if retry_after is None else f" after {retry_after:g} s"
        return f"the provider's rate or quota is used up: try again{wait}, or use another model"
    if status >= 500:
        return "the provider is down or overloaded: try again later, or use another model"
    return ""

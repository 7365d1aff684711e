"""Interpret an endpoint's refusal: whether to retry, its reason, and a remedy."""

from __future__ import annotations

from typing import cast


def is_temporary(status: int) -> bool:
    """Return whether a refusal with this status is temporary: the same call may succeed later."""
    return status in (408, 409, 425, 429) or status >= 500


def extract_reason(body: object) -> str:
    """Extract the endpoint's reason from the body of its refusal."""
    for key in ("error", "message"):
        if isinstance(body, dict):
            body = cast("dict[str, object]", body).get(key, cast("object", body))
    return "" if body is None else str(body)


def suggest_remedy(status: int, variable: str, retry_after: float | None = None) -> str:
    """Return what the user can do about a refusal. `variable` is where the key came from."""
    if status in (401, 403):
        return f"check the key in {variable}" if variable else "check the key"
    if status == 404:
        return "check the model's name and address"
    if status == 429:
        wait = "" if retry_after is None else f" after {retry_after:g} s"
        return f"the provider's rate limit or quota is reached: try again{wait}, or use another model"
    if status >= 500:
        return "the provider is down or overloaded: try again later, or use another model"
    return ""

"""Facts that earlier versions stored in words alone, read from documents that have no field for them."""

from __future__ import annotations

from typing import cast

OVER_BUDGET = "this call is over budget"
UNCHANGED = "back as it was: something in it must change to make the failing test pass"
NOT_ASKED = "budget"


def with_patch_problem(document: object, field: str) -> object:
    """A document of version 0.1 with the `PatchProblem` that its `field` ends in; any other as it is."""
    words = _words(document, "problem", field)
    problem = "over_budget" if words.endswith(OVER_BUDGET) else "unchanged" if words.endswith(UNCHANGED) else ""
    return _with(document, "problem", problem) if problem else document


def with_over_budget(document: object, field: str) -> object:
    """The same for a question other than that for a patch, which was not asked for its price."""
    return _with(document, "over_budget", True) if _words(document, "over_budget", field) == NOT_ASKED else document


def _words(document: object, absent: str, field: str) -> str:
    if not isinstance(document, dict) or absent in document:
        return ""
    return str(cast("dict[str, object]", document).get(field, ""))


def _with(document: object, field: str, value: object) -> dict[str, object]:
    return {**cast("dict[str, object]", document), field: value}

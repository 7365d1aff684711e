"""Failed attempts of earlier runs, as a question for edits shows them."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.failures import RecalledFailure
from redstart.core.noun import clip
from redstart.core.visible import one_line
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import section

_AT = {"signature": "at this failure"}


def tried_before(recalled: Iterable[RecalledFailure], repo: str) -> str:
    """What was tried before and failed, how, and in which run; words of models, so all of it is data.

    Lines of code are shown only in the repo that they are from.
    """
    blocks = [data(f"failed attempt {one.record.id}", _lines(one, repo), 2500) for one in recalled]
    said = "These edits did not work in earlier runs. Do not give them again." if blocks else ""
    return section("Tried before and failed", said, *blocks)


def _lines(recalled: RecalledFailure, repo: str) -> str:
    record, origin = recalled.record, recalled.record.provenance.get("run", "")
    at = _AT.get(recalled.source, "at this kind of failure, in the same test")
    lines = [f"tried before {at}, in run {origin}" if origin else f"tried before {at}"]
    parts = {
        "what was tried": record.tried,
        "files": ", ".join(record.files[:5]),
        "how it failed": record.what_failed,
        "root cause": record.root_cause,
        "try next": record.try_next,
    }
    lines += [f"{name}: {clip(one_line(text), 400)}" for name, text in parts.items() if text]
    if record.change and recalled.repo == repo:
        lines += ["the change:", record.change]
    return "\n".join(lines)

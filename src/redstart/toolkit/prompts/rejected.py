"""What a model is shown of its own edits that did not fit."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import RejectedEdit
from redstart.core.noun import clip
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import section

SENT, NEAREST, REASON, PATH = 1500, 800, 400, 200


def rejected(edits: Sequence[RejectedEdit], shown: int = 3) -> str:
    """The edits as they were sent and the text of the file that comes closest; empty where all fitted."""
    blocks = [_block(edit) for edit in edits[:shown]]
    if not blocks:
        return ""
    if len(edits) > shown:
        blocks.append(f"({len(edits) - shown} more edits did not fit.)")
    said = "Nothing of the last answer was applied. Copy the lines to change from the file exactly as they stand."
    return section("Your last edits that did not fit", said, *blocks)


def _block(edit: RejectedEdit) -> str:
    which = f"edit {edit.number} of {edit.path}" if edit.number else f"edits of {edit.path}"
    told = [f"reason: {clip(edit.reason, REASON)}", "you sent:", clip(edit.sent, SENT)]
    if edit.nearest:
        told += ["the file:", clip(edit.nearest, NEAREST)]
    return data(clip(which, PATH), "\n".join(told), SENT + NEAREST + REASON + 200)

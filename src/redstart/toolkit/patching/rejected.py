"""The edits of an answer that did not fit, each beside what the file holds instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redstart.core.change import Edit, EditKind, Reject, RejectedEdit
from redstart.toolkit.patching.ladder import put


def find_rejected(
    edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]
) -> tuple[RejectedEdit, ...]:
    """The edits that do not fit the files as they are, in the order of the answer; none where all of them fit."""
    return tuple(_beside(reject, edits) for reject in put(edits, read, names).rejects)


def _beside(reject: Reject, edits: Sequence[Edit]) -> RejectedEdit:
    concerned = [edit for edit in edits if edit.number == reject.block] or edits
    sent = "\n".join(write_edit(edit).rstrip("\n") for edit in concerned)
    return RejectedEdit(reject.block, reject.path, reject.reason, sent, reject.nearest)


def write_edit(edit: Edit) -> str:
    """The edit in the form in which it was given."""
    if edit.kind is EditKind.block:
        return f"<<<<<<< SEARCH\n{edit.search}=======\n{edit.text}>>>>>>> REPLACE\n"
    return edit.text

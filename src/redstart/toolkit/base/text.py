"""Make untrusted text safe for a prompt."""

from __future__ import annotations

import re

from redstart.core.frozen import clip

_UNSAFE_CHARACTER = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\"<>]")
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
_TAG = re.compile(
    # Code may have a blank before a name, but not before a slash.
    rf"[<\uff1c\ufe64](?:[\s{_UNSEEN}]*[/\uff0f][\s{_UNSEEN}]*|[{_UNSEEN}]*)"
    + f"[{_UNSEEN}]*".join(("[d\uff44]", "[a\uff41]", "[t\uff54]", "[a\uff41]"))
    + r"\b",
    re.IGNORECASE,
)
"""Text that is, or looks like, the start or end of a block."""


def wrap_untrusted(source: str, text: str, limit: int = 20_000) -> str:
    """Wrap untrusted text in a block that it cannot close from inside."""
    safe = _TAG.sub(r"\g<0>_", clip(text, limit))
    # A path is the repo's own choice too.
    source = _UNSAFE_CHARACTER.sub("_", source)
    return f'<data from="{source}">\n{safe.rstrip()}\n</data>'

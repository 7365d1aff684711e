"""Whether a value is a secret that somebody uses, or an example, a name, a word: by how it looks."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter

_EXAMPLE = re.compile(
    r"example|dummy|fake|sample|placeholder|change[_-]?me|replace[_-]?me|redacted|your[_-]|xxxx|\*\*\*|\.\.\.|…|0{6}"
    r"|1234567890|abcdefgh|deadbeef",
    re.IGNORECASE,
)
_INVENTED = re.compile(
    r"p|pw|pwd|p[a4@]ss(?:w(?:or)?d)?\d{0,4}|foo|bar|baz|x+|y|me|1?2?3?4?5?6?|hunter2|tiger|letmein"
    r"|(?:secret|test(?:ing)?|user(?:name)?|admin|root|guest|token|postgres|mysql|redis|rabbit|mongo|qwerty|abc)\d{0,4}",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_WORDS = re.compile(r"(?:[A-Z]?[a-z]{3,}+[\d_./:-]*+)++|[\w.-]*\.\w{1,5}")
_NAME = re.compile(r"[A-Za-z]*\d{0,4}(?:[_./:#-]+[A-Za-z]*\d{0,4})*|(?:[A-Z][a-z]+\d*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""Words, each with a number behind; a type; a variable: `sha256`, `user_v2_list`, `Base64Text`, `NEO4J_USER`."""
_FIGURE = re.compile(r"[\d.:,/TZ+-]+[A-Za-z%]{0,4}|0x[0-9a-fA-F]+|\d+(?:st|nd|rd|th)")
"""A number with its unit, a date, a version."""
_TEMPLATE = re.compile(r"[\s<>{}()\[\]`]|\$\w|%\(|^%|^[./~$]|://|\\[unx]")
_SIGNS = re.compile(r"[!@#$%^&*?~+=]")
URL = re.compile(r"\w+://")


def is_random(text: str) -> bool:
    """Whether the text looks drawn by chance: letters and digits mixed, no word repeated, nothing spelt out."""
    if _EXAMPLE.search(text) or not (re.search(r"\d", text) and re.search(r"[A-Za-z]", text)):
        return False
    return _entropy(text) >= min(3.0, math.log2(len(text)) - 1.2)


def is_dense(text: str) -> bool:
    """As random as a key that has no shape of its own must be to be told from other text."""
    if _UUID.fullmatch(text) or not is_random(text) or re.search(r"[ (){}<>$%]", text):
        return False
    if _HEX.fullmatch(text):
        return len(text) >= 32
    mixed = sum(bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d"))
    return mixed == 3 and _entropy(text) >= 3.5 and not _WORDS.fullmatch(text)


def is_web_token(text: str) -> bool:
    """Whether it is a JSON web token: its first part says so."""
    head = text.split(".", 1)[0]
    try:
        said = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(said, dict) and "alg" in said


def is_password(text: str) -> bool:
    """Whether what stands in the place of a password is one, and no place for one."""
    return not (_EXAMPLE.search(text) or re.search(r"[{}<>$%*,]", text)) and not _INVENTED.fullmatch(text)


def is_used(text: str) -> bool:
    """Whether a string that is held under a secret's name is a secret that somebody uses.

    It is one where letters, digits and signs are mixed as they are in no name, type, path, figure or template.
    """
    if not 6 <= len(text) <= 200 or len(set(text)) < 5 or not is_password(text.translate(_ALLOWED)):
        return False
    if _UUID.fullmatch(text) or _TEMPLATE.search(text) or _FIGURE.fullmatch(text):
        return False
    kinds = [bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d")]
    if _SIGNS.search(text):
        return sum(kinds) >= 2
    return kinds[2] and any(kinds[:2]) and not _NAME.fullmatch(text) and (len(text) < 20 or is_random(text))


def is_invented(text: str) -> bool:
    """Whether it is what stands for a password in every manual."""
    return _INVENTED.fullmatch(text) is not None


_ALLOWED = str.maketrans("", "", "$%*,")
"""Signs that a password may hold; a template is told by more than them."""


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)

"""Secrets in a text, by their shape or by their value, and the text without them.

What looks like a secret and is none costs the model a word of its context; what is one and stays costs a key. Still,
code is full of digests, UUIDs and invented passwords: only shapes that a provider's real keys have are masked, and what
is assigned to a name of a secret where it looks random.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

SHORTEST = 8
"""Characters of a variable's value that is masked wherever it stands: shorter ones are words."""


class _Kind(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    hint: str
    """Stands in every text that the pattern finds something in: looking for it is cheap."""
    real: Callable[[str], bool]
    """Whether what was found (the group `secret`, or all) is more than an example."""


def _random(text: str) -> bool:
    """Whether the text looks drawn by chance: letters and digits mixed, no word repeated, nothing spelt out."""
    if _EXAMPLE.search(text) or not (re.search(r"\d", text) and re.search(r"[A-Za-z]", text)):
        return False
    return _entropy(text) >= min(3.0, math.log2(len(text)) - 1.2)


def _dense(text: str) -> bool:
    """As random as a key that has no shape of its own must be to be told from other text."""
    if _UUID.fullmatch(text) or not _random(text) or re.search(r"[ (){}<>$%]", text):
        return False
    if _HEX.fullmatch(text):
        return len(text) >= 32
    mixed = sum(bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d"))
    return mixed == 3 and _entropy(text) >= 3.5 and not _WORDS.fullmatch(text)


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _token(text: str) -> bool:
    """Whether it is a JSON web token: its first part says so."""
    head = text.split(".", 1)[0]
    try:
        said = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(said, dict) and "alg" in said


def _password(text: str) -> bool:
    """Whether what stands between user and host in a URL is a password and no place for one."""
    return not (_EXAMPLE.search(text) or re.search(r"[{}<>$%*,]", text)) and not _INVENTED.fullmatch(text)


_EXAMPLE = re.compile(
    r"example|dummy|fake|sample|placeholder|changeme|redacted|your[_-]|xxxx|\*\*\*|\.\.\.|…|0{6}|1234567890|abcdefgh|deadbeef",
    re.IGNORECASE,
)
_INVENTED = re.compile(
    r"p|pw|pwd|p[a4@]ss(?:w(?:or)?d)?\d{0,4}|secret|foo|bar|baz|test(?:ing)?|user(?:name)?|admin|root|guest|token|x+|y|me"
    r"|1?2?3?4?5?6?|hunter2|tiger|letmein|postgres|mysql|redis|rabbit|mongo|qwerty|abc\d{0,3}",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_WORDS = re.compile(r"(?:[A-Z]?[a-z]{3,}+[\d_./:-]*+)++|[\w.-]*\.\w{1,5}")
_NAMED = (
    r"(?:(?:api|secret|access|auth|account|private)[_-]?(?:access[_-]?)?key|client[_-]?secret|passw(?:or)?d|passphrase"
    r"|(?:auth|access|refresh|bearer|api|secret|session|bot)[_-]?token|[_-](?:token|secret|key|pwd))"
)


def _kind(name: str, pattern: str, hint: str, real: Callable[[str], bool] = _random, flags: int = 0) -> _Kind:
    return _Kind(name, re.compile(pattern, flags), hint, real)


_KINDS = (
    _kind(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[\sA-Za-z0-9+/=\\:,.\"'()-]{40,}?)"
        r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z|(?=[^\sA-Za-z0-9+/=\\:,.\"'()-]))",
        "PRIVATE KEY",
        lambda text: re.search(r"[A-Za-z0-9+/]{32}", text) is not None,
    ),
    _kind("anthropic-key", r"\bsk-ant-[\w-]{24,}", "sk-ant-"),
    _kind("openrouter-key", r"\bsk-or-(?:v1-)?[\w-]{24,}", "sk-or-"),
    _kind("openai-key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{32,}", "sk-"),
    _kind("groq-key", r"\bgsk_[A-Za-z0-9]{32,}", "gsk_"),
    _kind("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}", "hf_"),
    _kind("google-key", r"\bAIza[\w-]{35}(?![\w-])", "AIza"),
    _kind("google-token", r"\bya29\.[\w-]{30,}", "ya29."),
    _kind("aws-key", r"\b(?:AKIA|ASIA|AGPA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b", "A"),
    _kind("github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}", "gh"),
    _kind("github-token", r"\bgithub_pat_\w{50,}", "github_pat_"),
    _kind("gitlab-token", r"\bgl(?:pat|dt|rt|cbt|ptt)-[\w-]{20,}", "gl"),
    _kind("slack-token", r"\bxox[abeoprs]-(?:\d+-)?[\w-]{16,}|\bxapp-\d-[\w-]{20,}", "x"),
    _kind("slack-hook", r"(?<=hooks\.slack\.com/services/)T\w+/B\w+/\w{20,}", "hooks.slack.com"),
    _kind("stripe-key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}", "_"),
    _kind("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b", "npm_"),
    _kind("package-token", r"\bpypi-AgE[\w-]{50,}", "pypi-"),
    _kind("sendgrid-key", r"\bSG\.[\w-]{20,24}\.[\w-]{40,46}", "SG."),
    _kind("telegram-token", r"\b\d{8,10}:AA[\w-]{33}\b", ":AA"),
    _kind("age-key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET"),
    _kind("jwt", r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}", "eyJ", _token),
    _kind("azure-key", r"(?<=AccountKey=)[A-Za-z0-9+/]{60,}={0,2}", "AccountKey="),
    _kind(
        "password",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,100}:(?P<secret>[^\s/@'\"<>]{3,200})@[\w.\[-]",
        "://",
        _password,
        re.I,
    ),
    _kind("bearer", r"\b(?:Bearer|Basic)\s+(?P<secret>[\w.~+/-]{24,}=*)", "B", _dense),
    _kind(
        "assigned",
        rf"{_NAMED}[\"']?\s*(?::|=>?|:=)\s*[\"']?(?P<secret>[\w+/.~-]{{20,}}+=*+)(?![(\[])",
        "",
        _dense,
        re.I,
    ),
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|KEYS?|SECRETS?|TOKENS?|PASS(?:WORD|WD|PHRASE)?|PWD|CREDENTIALS?|AUTH|COOKIE|DSN)(?:_|\d|$)"
    r"|(?:KEY|TOKEN|SECRET|PASSWORD)$",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"(?:^|_)(?:PUBLIC|PATH|FILE|DIR|SOCK|NAME|URL_BASE|LENGTH|TYPE|HOST|PORT)(?:_|$)|^S?PWD$|^OLDPWD$", re.I
)
_URL = re.compile(r"\w+://")


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The values in an environment that are to be masked wherever they stand, each with the variable's name.

    Those of variables whose names speak of a secret, but for values that are short, plain words, numbers or paths:
    masking `postgres` or `/home/shop/key.pem` would only blind the model.
    """
    found: dict[str, str] = {}
    for name, value in environ.items():
        if _SECRET_NAME.search(name) and not _HARMLESS_NAME.search(name) and _worth_hiding(value.strip()):
            found[value.strip()] = name.casefold()
    return found


def _worth_hiding(value: str) -> bool:
    if len(value) < SHORTEST or _INVENTED.fullmatch(value) or value.startswith(("/", "~", "./")):
        return False
    if _URL.match(value):
        return "@" in value
    return not re.fullmatch(r"[A-Za-z]{1,15}|\d{1,9}|true|false", value)


def mask(text: str, values: Mapping[str, str] | None = None) -> str:
    """`text` with each secret replaced by `«secret:kind»`; the same text where there is none.

    `values` are as `secrets_of` gives them. Masking what is masked changes nothing.
    """
    for value, name in sorted((values or {}).items(), key=lambda pair: -len(pair[0])):
        if value in text:
            bounded = rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])"
            text = re.sub(bounded, lambda _, name=name: f"«secret:{name}»", text)
    for kind in _KINDS:
        if kind.hint in text:
            text = kind.pattern.sub(lambda found, kind=kind: _masked(found, kind), text)
    return text


def _masked(found: re.Match[str], kind: _Kind) -> str:
    group = "secret" if "secret" in kind.pattern.groupindex else 0
    if not kind.real(found[group]):
        return found[0]
    start, end = found.span(group)
    offset = found.start()
    return f"{found[0][: start - offset]}«secret:{kind.name}»{found[0][end - offset :]}"

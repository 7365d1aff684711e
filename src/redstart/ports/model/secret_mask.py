"""Find secrets in texts by shape or by value, and hide them from a model.

A false positive costs the model a word of its context; a missed secret costs a key. Still, code is full of digests,
UUIDs and invented passwords. So only shapes of real provider keys are masked, and random-looking values that are
assigned to the name of a secret.
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

from redstart.core.chat import Answer, Ask, Message
from redstart.ports.model.port import Model

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
_WORDLIKE_TEXT = re.compile(r"(?:[A-Z]?[a-z]{3,}+[\d_./:-]*+)++|[\w.-]*\.\w{1,5}")
_NAME = re.compile(r"[A-Za-z]*\d{0,4}(?:[_./:#-]+[A-Za-z]*\d{0,4})*|(?:[A-Z][a-z]+\d*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""Words with optional trailing digits, types and variables: `sha256`, `user_v2_list`, `Base64Text`, `NEO4J_USER`."""
_FIGURE = re.compile(r"[\d.:,/TZ+-]+[A-Za-z%]{0,4}|0x[0-9a-fA-F]+|\d+(?:st|nd|rd|th)")
"""A number with its unit, a date or a version."""
_TEMPLATE = re.compile(r"[\s<>{}()\[\]`]|\$\w|%\(|^%|^[./~$]|://|\\[unx]")
_SPECIAL_CHARACTERS = re.compile(r"[!@#$%^&*?~+=]")
URL = re.compile(r"\w+://")


def is_random(text: str) -> bool:
    """Return whether the text looks random: it mixes letters and digits, and repeats or spells out no words."""
    if _EXAMPLE.search(text) or not (re.search(r"\d", text) and re.search(r"[A-Za-z]", text)):
        return False
    return _compute_entropy(text) >= min(3.0, math.log2(len(text)) - 1.2)


def is_dense(text: str) -> bool:
    """Return whether the text is random enough to be a key that has no recognizable shape."""
    if _UUID.fullmatch(text) or not is_random(text) or re.search(r"[ (){}<>$%]", text):
        return False
    if _HEX.fullmatch(text):
        return len(text) >= 32
    mixed = sum(bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d"))
    return mixed == 3 and _compute_entropy(text) >= 3.5 and not _WORDLIKE_TEXT.fullmatch(text)


def is_web_token(text: str) -> bool:
    """Return whether the text is a JSON web token, judged by its header."""
    head = text.split(".", 1)[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(header, dict) and "alg" in header


def is_password(text: str) -> bool:
    """Return whether the text in the position of a password is a real one and not a placeholder."""
    return not (_EXAMPLE.search(text) or re.search(r"[{}<>$%*,]", text)) and not _INVENTED.fullmatch(text)


def is_used(text: str) -> bool:
    """Return whether a string assigned to a secret's name is a secret in actual use.

    It is if it mixes letters, digits and signs in a way that no name, type, path, figure or template does.
    """
    if not 6 <= len(text) <= 200 or len(set(text)) < 5 or not is_password(text.translate(_TEMPLATE_SIGNS)):
        return False
    if _UUID.fullmatch(text) or _TEMPLATE.search(text) or _FIGURE.fullmatch(text):
        return False
    kinds = [bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d")]
    if _SPECIAL_CHARACTERS.search(text):
        return sum(kinds) >= 2
    return kinds[2] and any(kinds[:2]) and not _NAME.fullmatch(text) and (len(text) < 20 or is_random(text))


def is_invented(text: str) -> bool:
    """Return whether the text is a sample password, such as manuals use."""
    return _INVENTED.fullmatch(text) is not None


_TEMPLATE_SIGNS = str.maketrans("", "", "$%*,")
"""Signs that a password may contain. They alone do not make a text a template."""


def _compute_entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


SHORTEST = 8
"""The minimum length of a variable's value that is masked everywhere. Shorter values are words."""


class _Kind(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    hint: str
    """A substring of every text that the pattern matches. Searching for it first is cheap."""
    is_real: Callable[[str], bool]
    """Returns whether the match (the group `secret`, or all of it) is more than an example."""


_NAMED_PATTERN = (
    r"(?:(?:api|secret|access|auth|account|private)[_-]?(?:access[_-]?)?key|client[_-]?secret|passw(?:or)?d|passphrase"
    r"|(?:auth|access|refresh|bearer|api|secret|session|bot)[_-]?token|[_-](?:token|secret|key|pwd))"
)
_PLAINLY = (
    r"(?:(?:api|secret|access|auth|account|private|signing|encryption|master)[_-]?(?:access[_-]?)?key|passw(?:or)?d"
    r"|passphrase|passcode|(?<![a-z])(?:pass|pwd|secret|token)|(?-i:(?<=[a-z])(?:Pwd|Secret|Token)))"
)
"""Names whose values are secrets even if short. A `sort_key` is not one, and `token_type` has another ending."""
_TYPE = r"(?::\s*[\w.]{1,40}(?:\[[\w.,\s|]{1,40}\])?(?:\s*\|\s*\w{1,40})?\s*(?==))?"
_CALL = r"(?:\w{0,20}(?:Field|Secret|Str|String|Bytes)\w{0,10}\(\s*(?:\w{1,20}\s*=\s*)?)?"
"""A call that may wrap a value: `SecretStr(…)`, `Field(default=…)`."""
_QUOTED_PATTERN = r"[rbuf]{0,2}(?P<quote>[\"'])(?P<secret>[^\"'\s\\]{6,200})(?P=quote)"


def _make_kind(name: str, pattern: str, hint: str, is_real: Callable[[str], bool] = is_random, flags: int = 0) -> _Kind:
    return _Kind(name, re.compile(pattern, flags), hint, is_real)


_KINDS = (
    _make_kind(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[\sA-Za-z0-9+/=\\:,.\"'()-]{40,}?)"
        r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z|(?=[^\sA-Za-z0-9+/=\\:,.\"'()-]))",
        "PRIVATE KEY",
        lambda text: re.search(r"[A-Za-z0-9+/]{32}", text) is not None,
    ),
    _make_kind("anthropic-key", r"\bsk-ant-[\w-]{24,}", "sk-ant-"),
    _make_kind("openrouter-key", r"\bsk-or-(?:v1-)?[\w-]{24,}", "sk-or-"),
    _make_kind("openai-key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{32,}", "sk-"),
    _make_kind("groq-key", r"\bgsk_[A-Za-z0-9]{32,}", "gsk_"),
    _make_kind("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}", "hf_"),
    _make_kind("google-key", r"\bAIza[\w-]{35}(?![\w-])", "AIza"),
    _make_kind("google-token", r"\bya29\.[\w-]{30,}", "ya29."),
    _make_kind("aws-key", r"\b(?:AKIA|ASIA|AGPA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b", "A"),
    _make_kind("github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}", "gh"),
    _make_kind("github-token", r"\bgithub_pat_\w{50,}", "github_pat_"),
    _make_kind("gitlab-token", r"\bgl(?:pat|dt|rt|cbt|ptt)-[\w-]{20,}", "gl"),
    _make_kind("slack-token", r"\bxox[abeoprs]-(?:\d+-)?[\w-]{16,}|\bxapp-\d-[\w-]{20,}", "x"),
    _make_kind("slack-hook", r"(?<=hooks\.slack\.com/services/)T\w+/B\w+/\w{20,}", "hooks.slack.com"),
    _make_kind("stripe-key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}", "_"),
    _make_kind("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b", "npm_"),
    _make_kind("package-token", r"\bpypi-AgE[\w-]{50,}", "pypi-"),
    _make_kind("sendgrid-key", r"\bSG\.[\w-]{20,24}\.[\w-]{40,46}", "SG."),
    _make_kind("telegram-token", r"\b\d{8,10}:AA[\w-]{33}\b", ":AA"),
    _make_kind("age-key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET"),
    _make_kind("jwt", r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}", "eyJ", is_web_token),
    _make_kind("azure-key", r"(?<=AccountKey=)[A-Za-z0-9+/]{60,}={0,2}", "AccountKey="),
    _make_kind(
        "password",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,100}:(?P<secret>[^\s/@'\"<>]{3,200})@[\w.\[-]",
        "://",
        is_password,
        re.I,
    ),
    _make_kind("bearer", r"\b(?:Bearer|Basic)\s+(?P<secret>[\w.~+/-]{24,}=*)", "B", is_dense),
    _make_kind(
        "assigned",
        rf"{_NAMED_PATTERN}[\"']?\s*(?::|=>?|:=)\s*[\"']?(?P<secret>[\w+/.~-]{{20,}}+=*+)(?![(\[])",
        "",
        is_dense,
        re.I,
    ),
    # api_key: str = "…", "client_secret": "…", password="…", token := "…", process.env.API_KEY || "…"
    _make_kind(
        "assigned",
        rf"{_PLAINLY}[\"']?\]?\)?\s*{_TYPE}(?::=|=>|[:=]|\|\||\?\?|\bor\b)\s*\(?\s*{_CALL}{_QUOTED_PATTERN}",
        "",
        is_used,
        re.I,
    ),
    # environ.get("X_TOKEN", "…")
    _make_kind(
        "assigned",
        rf"\b(?:get|getenv|env|config|setdefault|setenv|set)\(\s*[\"'][\w.-]*{_PLAINLY}[\"']\s*,\s*{_CALL}(?:default\s*=\s*)?{_QUOTED_PATTERN}",
        "",
        is_used,
        re.I,
    ),
    # A separate line without quotes: `password: …` in YAML, `PASSWORD=…` in a shell
    _make_kind(
        "assigned",
        rf"^[ \t]*(?:- |export |set )?[\w.-]*{_PLAINLY}(?::[ \t]+|=|[ \t]*=[ \t]*(?=\w+[!@$]))"
        r"(?P<secret>[^\s\"'#,;]{6,200})(?=[ \t]*(?:#.*)?$)",
        "",
        is_used,
        re.I | re.M,
    ),
    _make_kind(
        "password",
        r"\b(?:machine\s+\S+|default)\s+login\s+\S+\s+(?:account\s+\S+\s+)?password\s+(?P<secret>\S{3,200})",
        "login",
        is_password,
    ),
)
_PART = r"[\"'](?:[\w+/.~=-]|\\\n[ \t]*){4,}[\"']"
_SPLIT = re.compile(rf"{_PART}(?:\s*[+\\]?\s*{_PART})+|[\"'][\w+/.~=-]{{4,}}(?:\\\n[ \t]*[\w+/.~=-]{{4,}})+[\"']")
"""Strings that a language concatenates: adjacent, joined by a plus, or continued after a backslash."""
_JOINTS = re.compile(r"[\"']\s*[+\\]?\s*[\"']|\\\n[ \t]*")
_BEFORE = 80
"""The number of characters before such strings that are searched for their name."""
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|KEYS?|SECRETS?|TOKENS?|PASS(?:WORD|WD|PHRASE)?|PWD|CREDENTIALS?|AUTH|COOKIE|DSN)(?:_|\d|$)"
    r"|(?:KEY|TOKEN|SECRET|PASSWORD)$",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"(?:^|_)(?:PUBLIC|PATH|FILE|DIR|SOCK|NAME|URL_BASE|LENGTH|TYPE|HOST|PORT)(?:_|$)|^S?PWD$|^OLDPWD$", re.I
)


def find_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values in an environment that must be masked everywhere, each with its variable's name.

    These are the values of variables whose names suggest a secret. Short values, plain words, numbers and paths are
    excluded: masking `postgres` or `/home/shop/key.pem` would only blind the model.
    """
    secrets: dict[str, str] = {}
    for name, value in environ.items():
        if _SECRET_NAME.search(name) and not _HARMLESS_NAME.search(name) and _is_worth_hiding(value.strip()):
            secrets[value.strip()] = name.casefold()
    return secrets


def _is_worth_hiding(value: str) -> bool:
    if len(value) < SHORTEST or is_invented(value) or value.startswith(("/", "~", "./")):
        return False
    if URL.match(value):
        return "@" in value
    return not re.fullmatch(r"[A-Za-z]{1,15}|\d{1,9}|true|false", value)


def mask(text: str, values: Mapping[str, str] | None = None) -> str:
    """Replace each secret in `text` by `«secret:kind»`. A text without secrets is returned unchanged.

    `values` are as `find_secrets` returns them. Masking is idempotent.
    """
    for value, name in sorted((values or {}).items(), key=lambda pair: -len(pair[0])):
        if value in text:
            pattern = rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])"
            text = re.sub(pattern, lambda _, name=name: f"«secret:{name}»", text)
    return _mask_shapes(_SPLIT.sub(_mask_joined, text))


def _mask_shapes(text: str) -> str:
    for kind in _KINDS:
        if kind.hint in text:
            text = kind.pattern.sub(lambda match, kind=kind: _mask_match(match, kind), text)
    return text


def _mask_joined(match: re.Match[str]) -> str:
    """Join the strings and mask the result if it is a secret; else return them unchanged."""
    prefix = match.string[max(match.start() - _BEFORE, 0) : match.start()]
    joined = _JOINTS.sub("", match[0])
    masked = _mask_shapes(prefix + joined)
    return masked[len(prefix) :] if masked.startswith(prefix) and masked != prefix + joined else match[0]


def _mask_match(match: re.Match[str], kind: _Kind) -> str:
    group = "secret" if "secret" in kind.pattern.groupindex else 0
    if not kind.is_real(match[group]):
        return match[0]
    start, end = match.span(group)
    offset = match.start()
    return f"{match[0][: start - offset]}«secret:{kind.name}»{match[0][end - offset :]}"


class MaskedModel:
    """Masks the texts of a question and the arguments of its tool calls, then asks `inner`.

    `values` are secrets by value, as `find_secrets` returns them. Known shapes of keys are masked as well. The answer
    is returned unchanged: no secret is put back, so that none gets into a record through an answer.
    """

    def __init__(self, inner: Model, values: Mapping[str, str]) -> None:
        self._inner = inner
        self._values = dict(values)

    async def ask(self, ask: Ask) -> Answer:
        messages = tuple(map(self._mask_message, ask.messages))
        return await self._inner.ask(ask if messages == ask.messages else ask.model_copy(update={"messages": messages}))

    def _mask_message(self, message: Message) -> Message:
        calls = tuple(
            call.model_copy(update={"arguments": mask(call.arguments, self._values)}) for call in message.calls
        )
        return message.model_copy(update={"text": mask(message.text, self._values), "calls": calls})

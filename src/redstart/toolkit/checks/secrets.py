"""Secrets in the code: known forms found by detect-secrets, others by the name that holds them."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.source import LARGEST, NamedString, Source

TOOL = "detect-secrets"
BY_NAME = "named-as-secret"

_PLUGINS = {
    "artifactory": "ArtifactoryDetector",
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "private_key": "PrivateKeyDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
"""Detectors of a form that cannot occur by accident. Those based on entropy or a word alone are wrong too often."""
_MORE_FORMS = {
    "anthropic": re.compile(r"sk-ant-(?:api\d\d|admin\d\d)-[\w-]{24,}"),
    "google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "github_token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,})"),
    "openai_key": re.compile(r"\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}\b"),
}
"""Forms that the detectors do not know."""

_NOT_WRITTEN = re.compile(r"(^|/)([^/]*(\.lock|\.min\.js|\.svg|\.ipynb|-lock\.json|-lock\.yaml|\.map|\.csv))$")
_EXAMPLE_FILE = re.compile(r"(example|sample|template|dist)s?(\.\w+)?$|\.(md|rst|txt)$", re.IGNORECASE)
_SETTINGS_FILE = re.compile(r"(^|/)(\.env[^/]*|[^/]*\.(env|ini|cfg|conf|toml|ya?ml|json|properties))$")
_PASSWORD = re.compile(r"(^|_|\b)(password|passwd|pwd|passphrase|passcode|pass)\d?$", re.IGNORECASE)
_HOLDS = re.compile(
    r"(^|_|-|\b)(secret|secret_?key|api_?key|app_?key|access_?key|auth_?key|private_?key|encryption_?key|signing_?key|"
    r"master_?key|account_?key|jwt_?key|token|auth|authorization|credentials?|client_?secret|webhook_?secret|"
    r"hmac_?key|fernet_?key|salt|pepper|bearer)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACEHOLDER = re.compile(
    r"change[-_ ]?(me|this|it)|replace|your[-_ ]?|\byour|example|sample|dummy|fake|mock|placeholder|todo|fixme|x{4,}|"
    r"\*{3,}|[<>]|\$\{|\$\(|\{\{|^\{|%\(|\.\.\.|insert|redacted|^none$|^null$|undefined|\btest(ing)?\b|^test|"
    r"not[-_ ]?(a[-_ ])?(real|secret|used|set)|"
    r"\bdev\b|development|\blocal|\bdefault\b|[-_]here$|foobar|^foo|^bar|lorem|^n/?a$|unused|"
    r"^(my|the|a|some)[-_ ]?(super[-_ ]?)?(secret|password|token|key)|^\*+$|abc123|"
    r"^(secret|password|passwd|token|key)s?$|"
    r"os\.environ|getenv|vault:|^env:|^file:|secretsmanager|^arn:|^projects/|insecure|invalid|\bempty\b|^missing|"
    r"deadbeef|0{8,}|^-+$|^anonymous$|^guest$|^user(name)?$|^string$",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_PLACE = re.compile(r"^(https?|ftp|file|s3|gs)://[^@]*$|^[./~]|^[\w.-]+/[\w./-]*$|^\w+(\.\w+)+$|^[\w.+-]+@[\w-]+\.\w+$")
_WORDS = re.compile(r"_*[A-Za-z]+([_\-. :]?[A-Za-z]+)*\.?|[a-z]+:[a-z]+([-.][a-z]+|[-.]\d{1,2})*")
"""Only words, or the name of a model or an image with its version."""
_SETTING = re.compile(
    r"""^\s*(?:export\s+)?["']?([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',]+)["']?\s*,?\s*(?:#.*)?$""", re.M
)
_ADDRESS = re.compile(r"\w[\w+]*://[^\s:/@]*:([^\s@/]+)@[^\s/@]+")
_COMMON = frozenset({"pass", "password", "pw", "pwd", "tiger", "secret", "postgres", "root", "admin", "mysql"})
"""What manuals use as a password."""
_PUBLIC = re.compile(r"^(ssh-(rsa|ed25519)|sha\d+[-:]|pk_|\$2[aby]\$|\$argon2|pbkdf2|scrypt:|-----BEGIN (PUBLIC|CERT))")


_HINTS = re.compile(
    r"A(?:KIA|SIA|3T|BIA|CCA)[0-9A-Z]{14}|(?i:aws).{0,20}(?i:key|pwd|pw|password|pass|token)|AccountKey=|(?i:xox)[abposr]-|"
    r"hooks\.slack|eyJ[\w=-]{8}|PRIVATE KEY|PuTTY-User|[rs]k_live_|SG\.[\w-]{20}|(?:AC|SK)[a-z0-9]{32}|sq0csp|"
    r"\d{8,10}:[\w-]{35}|[MNO][\w-]{23,25}\.[\w-]{6}\.|gl[a-z]{1,8}-|[0-9a-z]{32}-us\d|_authToken|npm_|pypi-|T3BlbkFJ|"
    r"AKC\w{10}|AP[\dABCDEF]\w{8}"
)
"""A part of the form that each of the detectors looks for."""


class _Detector(Protocol):
    denylist: Sequence[re.Pattern[str]]
    secret_type: str

    def analyze_string(self, string: str) -> Iterator[str]: ...


def secrets(sources: Sequence[Source]) -> list[Finding]:
    """Find every secret in these files, one per line. Obvious placeholders, examples and test data do not count."""
    return [item for source in sources for item in _of(source)]


def _of(source: Source) -> Iterator[Finding]:
    if len(source.data) > LARGEST or b"\0" in source.data[:8000] or _NOT_WRITTEN.search(source.path):
        return
    told: set[int] = set()
    for line, what in _by_form(source):
        if line not in told:
            told.add(line)
            rule = re.sub(r"\W+", "-", what.lower()).strip("-")
            yield source.finding(
                TOOL, rule, line, f"a secret stands in the code: {what}", FindingKind.secret, Risk.high
            )
    if source.is_test or _EXAMPLE_FILE.search(source.path):
        return
    for held in _named(source):
        if held.line not in told and (is_secret(held.name, held.value) or _opens(held.value)):
            told.add(held.line)
            words = f"a secret stands in the code: {held.name[:60]}"
            yield source.finding(TOOL, BY_NAME, held.line, words, FindingKind.secret, Risk.high)


# -- by form -----------------------------------------------------------------------------------------------------------


@cache
def _detectors() -> tuple[_Detector, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from an HTTP library that is loaded too, and never used here
        return tuple(
            getattr(import_module(f"detect_secrets.plugins.{file}"), name)() for file, name in _PLUGINS.items()
        )


def _by_form(source: Source) -> Iterator[tuple[int, str]]:
    text = source.text
    # loading the detectors takes longer than seeing that none of them can find anything
    for detector in _detectors() if _HINTS.search(text) else ():
        for regex in detector.denylist:
            for found in regex.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                for value in detector.analyze_string(source.line(line)):
                    if _is_real_form(value, detector.secret_type, source, line):
                        yield line, detector.secret_type
    for what, regex in _MORE_FORMS.items():
        for found in regex.finditer(text):
            if _spread(found[0]) and not _PLACEHOLDER.search(found[0]):
                yield text.count("\n", 0, found.start()) + 1, what.replace("_", " ")


def _is_real_form(value: str, what: str, source: Source, line: int) -> bool:
    if _PLACEHOLDER.search(value) or not value:
        return False
    if what == "Private Key":
        return _has_key_below(source, line)
    if what == "JSON Web Token":
        # only the last part of a token is secret; a token without it, or from jwt.io, grants nothing
        return value.count(".") >= 1 and "eyJzdWIiOiIxMjM0NTY3ODkw" not in source.line(line)
    return _spread(value)


def _has_key_below(source: Source, line: int) -> bool:
    """Whether something that can be a key follows the line that announces one."""
    after = " ".join(source.lines[line - 1 : line + 3])
    body = re.sub(r"-----[^-]*-----|\\n", " ", after)
    return any(_spread(word) for word in re.findall(r"[A-Za-z0-9+/=]{24,}", body))


# -- by name -----------------------------------------------------------------------------------------------------------


def _named(source: Source) -> Iterator[NamedString]:
    for string in source.named_strings():
        if not string.is_compared or _PASSWORD.search(string.name) or string.name.lower().endswith("token"):
            yield string
    if _SETTINGS_FILE.search(source.path):
        for found in _SETTING.finditer(source.text):
            name = re.sub(r"[.-]", "_", found[1])
            yield NamedString(name, found[2], source.text.count("\n", 0, found.start(1)) + 1)


def is_secret(name: str, value: str) -> bool:
    """Whether a string under this name is a secret in use."""
    name = _CAMEL.sub("_", name.strip())
    value = re.sub(r"^(Bearer|Basic|Token)\s+", "", value.strip(), flags=re.IGNORECASE)
    if not value or _PLACEHOLDER.search(value) or _UUID.fullmatch(value) or _PUBLIC.match(value):
        return False
    if _PASSWORD.search(name):
        return _is_real_password(value)
    if not _HOLDS.search(name) or len(value) < 8 or re.search(r"\s", value) or _PLACE.match(value):
        return False
    return not _WORDS.fullmatch(value) and _spread(value)


def _opens(value: str) -> bool:
    """Whether it is an address with a password in it."""
    found = _ADDRESS.match(value.strip())
    return found is not None and found[1].lower() not in _COMMON and _is_real_password(found[1])


def _is_real_password(value: str) -> bool:
    if len(value) < 5 or len(value) > 200 or re.search(r"\s|[{}]", value) or _PLACEHOLDER.search(value):
        return False
    if value.lower().endswith(("password", "passwd")) and value.lower().replace("_", "").isalpha():
        return False  # the name of a field
    if _WORDS.fullmatch(value) and re.search(r"[_\-.:]", value):
        return False  # an identifier
    return len(set(value)) > 3


def _spread(value: str) -> bool:
    """Whether the letters vary as in a machine-made string."""
    counted = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counted.values())
    return entropy >= 2.9 and len(counted) >= 6

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
from redstart.toolkit.checks.source import MAX_FILE_BYTES, NamedString, Source

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
_SECRET_NAME = re.compile(
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
_WORDS_ONLY = re.compile(r"_*[A-Za-z]+([_\-. :]?[A-Za-z]+)*\.?|[a-z]+:[a-z]+([-.][a-z]+|[-.]\d{1,2})*")
"""Only words, or the name of a model or an image with its version."""
_SETTING = re.compile(
    r"""^\s*(?:export\s+)?["']?([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',]+)["']?\s*,?\s*(?:#.*)?$""", re.M
)
_ADDRESS = re.compile(r"\w[\w+]*://[^\s:/@]*:([^\s@/]+)@[^\s/@]+")
_EXAMPLE_PASSWORDS = frozenset(
    {"pass", "password", "pw", "pwd", "tiger", "secret", "postgres", "root", "admin", "mysql"}
)
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


def find_secrets(sources: Sequence[Source]) -> list[Finding]:
    """Find every secret in these files, one per line. Obvious placeholders, examples and test data do not count."""
    return [item for source in sources for item in _find_in_file(source)]


def _find_in_file(source: Source) -> Iterator[Finding]:
    if len(source.data) > MAX_FILE_BYTES or b"\0" in source.data[:8000] or _NOT_WRITTEN.search(source.path):
        return
    reported: set[int] = set()
    for line, form in _find_by_form(source):
        if line not in reported:
            reported.add(line)
            rule = re.sub(r"\W+", "-", form.lower()).strip("-")
            yield source.build_finding(
                TOOL, rule, line, f"a secret stands in the code: {form}", FindingKind.secret, Risk.high
            )
    if source.is_test or _EXAMPLE_FILE.search(source.path):
        return
    for named_string in _list_named_strings(source):
        if named_string.line not in reported and (
            is_secret(named_string.name, named_string.value) or _has_password(named_string.value)
        ):
            reported.add(named_string.line)
            message = f"a secret stands in the code: {named_string.name[:60]}"
            yield source.build_finding(TOOL, BY_NAME, named_string.line, message, FindingKind.secret, Risk.high)


# -- by form -----------------------------------------------------------------------------------------------------------


@cache
def _load_detectors() -> tuple[_Detector, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from an HTTP library that is loaded too, and never used here
        return tuple(
            getattr(import_module(f"detect_secrets.plugins.{file}"), name)() for file, name in _PLUGINS.items()
        )


def _find_by_form(source: Source) -> Iterator[tuple[int, str]]:
    text = source.text
    # loading the detectors takes longer than seeing that none of them can find anything
    for detector in _load_detectors() if _HINTS.search(text) else ():
        for regex in detector.denylist:
            for match in regex.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                for value in detector.analyze_string(source.get_line(line)):
                    if _is_real_form(value, detector.secret_type, source, line):
                        yield line, detector.secret_type
    for form, regex in _MORE_FORMS.items():
        for match in regex.finditer(text):
            if _is_random(match[0]) and not _PLACEHOLDER.search(match[0]):
                yield text.count("\n", 0, match.start()) + 1, form.replace("_", " ")


def _is_real_form(value: str, form: str, source: Source, line: int) -> bool:
    if _PLACEHOLDER.search(value) or not value:
        return False
    if form == "Private Key":
        return _has_key_below(source, line)
    if form == "JSON Web Token":
        # only the last part of a token is secret; a token without it, or from jwt.io, grants nothing
        return value.count(".") >= 1 and "eyJzdWIiOiIxMjM0NTY3ODkw" not in source.get_line(line)
    return _is_random(value)


def _has_key_below(source: Source, line: int) -> bool:
    """Whether something that can be a key follows the line that announces one."""
    following = " ".join(source.lines[line - 1 : line + 3])
    body = re.sub(r"-----[^-]*-----|\\n", " ", following)
    return any(_is_random(word) for word in re.findall(r"[A-Za-z0-9+/=]{24,}", body))


# -- by name -----------------------------------------------------------------------------------------------------------


def _list_named_strings(source: Source) -> Iterator[NamedString]:
    for string in source.list_named_strings():
        if not string.is_compared or _PASSWORD.search(string.name) or string.name.lower().endswith("token"):
            yield string
    if _SETTINGS_FILE.search(source.path):
        for match in _SETTING.finditer(source.text):
            name = re.sub(r"[.-]", "_", match[1])
            yield NamedString(name, match[2], source.text.count("\n", 0, match.start(1)) + 1)


def is_secret(name: str, value: str) -> bool:
    """Whether a string under this name is a secret in use."""
    name = _CAMEL.sub("_", name.strip())
    value = re.sub(r"^(Bearer|Basic|Token)\s+", "", value.strip(), flags=re.IGNORECASE)
    if not value or _PLACEHOLDER.search(value) or _UUID.fullmatch(value) or _PUBLIC.match(value):
        return False
    if _PASSWORD.search(name):
        return _is_real_password(value)
    if not _SECRET_NAME.search(name) or len(value) < 8 or re.search(r"\s", value) or _PLACE.match(value):
        return False
    return not _WORDS_ONLY.fullmatch(value) and _is_random(value)


def _has_password(value: str) -> bool:
    """Whether it is an address with a password in it."""
    match = _ADDRESS.match(value.strip())
    return match is not None and match[1].lower() not in _EXAMPLE_PASSWORDS and _is_real_password(match[1])


def _is_real_password(value: str) -> bool:
    if len(value) < 5 or len(value) > 200 or re.search(r"\s|[{}]", value) or _PLACEHOLDER.search(value):
        return False
    if value.lower().endswith(("password", "passwd")) and value.lower().replace("_", "").isalpha():
        return False  # the name of a field
    if _WORDS_ONLY.fullmatch(value) and re.search(r"[_\-.:]", value):
        return False  # an identifier
    return len(set(value)) > 3


def _is_random(value: str) -> bool:
    """Whether the letters vary as in a machine-made string."""
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy >= 2.9 and len(counts) >= 6

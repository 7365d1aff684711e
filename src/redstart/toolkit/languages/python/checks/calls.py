"""Find dangerous calls. Each rule also knows what makes the same call harmless."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.languages.python.checks.source import PythonSource, argument, is_constant, keyword

TOOL = "rules"

_PASSWORDS = re.compile(
    r"passw|passwd|\bpwd\b|_pwd|pwd_|credential|secret|signature|sign_|auth|token|login|pin_code", re.I
)
_TOKENS = re.compile(
    r"token|secret|passw|passwd|nonce|salt|otp|session|csrf|api_?key|reset|verification|auth|invite|voucher|"
    r"_key$|^key$|_pin$|^pin$|passcode|recovery|confirm(ation)?_code|coupon",
    re.I,
)
_RIGHTS = re.compile(
    r"is_admin|is_staff|is_superuser|is_authenticated|has_perm|permission|authori[sz]ed|authenticated|is_owner|"
    r"can_(edit|delete|write|view|access|read)|check_password|verify_(password|token|signature)|\brole\b|"
    r"is_logged_in|has_role|has_access|allowed_to|compare_digest|valid_token|is_valid_signature",
    re.I,
)
_SAFE_LOADERS = ("SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader")
_RANDOM = frozenset(
    f"random.{item}" for item in ("choice", "choices", "randint", "random", "getrandbits", "sample", "randrange",
                                "randbytes", "uniform", "shuffle")
)  # fmt: skip
_UNPICKLES = frozenset(
    {"pickle.load", "pickle.loads", "pickle.Unpickler", "cPickle.load", "cPickle.loads", "_pickle.loads", "dill.load",
     "dill.loads", "cloudpickle.load", "cloudpickle.loads", "marshal.load", "marshal.loads", "shelve.open",
     "joblib.load", "pandas.read_pickle", "jsonpickle.decode", "jsonpickle.unpickler.decode"}
)  # fmt: skip
_XML = re.compile(
    r"^xml\.(etree\.(c?ElementTree)\.(parse|fromstring|iterparse|XML|XMLParser|fromstringlist)|"
    r"sax\.(parse|parseString|make_parser)|dom\.(minidom|pulldom)\.(parse|parseString)|dom\.expatbuilder\.\w+)$"
)
_WEB = re.compile(r"^(requests|httpx|aiohttp|urllib3|session|client|self)\b")
_HTTP_WORDS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "Client",
                         "AsyncClient", "Session", "send", "PoolManager"})  # fmt: skip


_COMMON = frozenset({"append", "get", "join", "format", "items", "split", "strip", "startswith", "pop", "add", "keys",
                     "extend", "replace", "update", "values", "encode", "info", "debug"})  # fmt: skip
"""Methods that no rule covers if they have no keyword argument."""


class CallView(NamedTuple):
    """A call with the facts that rules need."""

    node: ast.Call
    name: str
    last: str
    source: PythonSource
    archives: frozenset[str]
    """Names that hold a tar archive."""

    @property
    def around(self) -> str:
        """The names of the enclosing functions and of the targets that the value is assigned to."""
        found: list[str] = []
        node: ast.AST | None = self.node
        while node is not None:
            above = self.source.parents.get(node)
            match above:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.append(above.name)
                case ast.Assign():
                    found += map(_target, above.targets)
                case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign():
                    found.append(_target(above.target))
                case ast.keyword():
                    found.append(above.arg or "")
                case ast.Dict():
                    pairs = zip(above.keys, above.values, strict=True)
                    found += [str(key.value) for key, value in pairs if value is node and isinstance(key, ast.Constant)]
                case _:
                    pass
            node = above
        return " ".join(found)


Rule = Callable[[CallView], str]
"""Describes what is wrong with a call; empty if nothing is."""


def _unpickles(seen: CallView) -> str:
    if seen.name == "numpy.load":
        return (
            "numpy.load with allow_pickle runs code from the file"
            if is_constant(keyword(seen.node, "allow_pickle"), True)
            else ""
        )
    if seen.name == "torch.load":
        safe = is_constant(keyword(seen.node, "weights_only"), True)
        return "" if safe else "torch.load runs code from the file; pass weights_only=True"
    if seen.name not in _UNPICKLES:
        return ""
    given = seen.node.args[0] if seen.node.args else None
    if isinstance(given, ast.Call) and seen.source.names.dotted(given.func).rpartition(".")[2] == "dumps":
        return ""  # a copy made in place
    if seen.name.startswith("marshal") and is_constant(given):
        return ""
    return f"{seen.name} runs code from what it reads; use a format that holds data only"


def _yaml(seen: CallView) -> str:
    if seen.name in ("yaml.unsafe_load", "yaml.unsafe_load_all"):
        return "yaml.unsafe_load makes objects of any kind; use yaml.safe_load"
    if seen.name not in ("yaml.load", "yaml.load_all"):
        return ""
    loader = argument(seen.node, 1, "Loader")
    if loader is not None and seen.source.names.dotted(loader).rpartition(".")[2] in _SAFE_LOADERS:
        return ""
    if isinstance(loader, ast.Name) and _is_safe_loader(loader.id, seen.source):
        return ""
    return "yaml.load makes objects of any kind; use yaml.safe_load"


def _is_safe_loader(name: str, source: PythonSource) -> bool:
    """Whether a name is a class of the module that derives from a safe loader."""
    return any(
        node.name == name and any(source.names.dotted(base).rpartition(".")[2] in _SAFE_LOADERS for base in node.bases)
        for node in source.all(ast.ClassDef)
    )


def _temporary(seen: CallView) -> str:
    named = seen.name in ("tempfile.mktemp", "os.tempnam", "os.tmpnam")
    return f"{seen.name} names a file that somebody else may make first; use tempfile.mkstemp" if named else ""


def _weak_hash(seen: CallView) -> str:
    name = seen.name
    if name == "hashlib.new":
        given = seen.node.args[0] if seen.node.args else None
        name = f"hashlib.{given.value}".lower() if isinstance(given, ast.Constant) else name
    if name not in ("hashlib.md5", "hashlib.sha1", "hashlib.md4", "Crypto.Hash.MD5.new", "Crypto.Hash.SHA.new"):
        return ""
    if is_constant(keyword(seen.node, "usedforsecurity"), False):
        return ""
    words = ast.unparse(seen.node)
    if not (_PASSWORDS.search(seen.around) or _PASSWORDS.search(words)):
        return ""
    return f"{name} is too weak to keep a secret; use hashlib.scrypt or hmac with sha256"


def _unverified(seen: CallView) -> str:
    if seen.name in ("ssl._create_unverified_context", "ssl.wrap_socket"):
        return "this connection does not check who answers"
    if is_constant(keyword(seen.node, "verify"), False) and (_WEB.match(seen.name) or seen.last in _HTTP_WORDS):
        return "verify=False does not check who answers"
    of_aiohttp = seen.last in _HTTP_WORDS | {"TCPConnector", "ws_connect"} and "aiohttp" in seen.source.text
    if of_aiohttp and any(is_constant(keyword(seen.node, name), False) for name in ("ssl", "verify_ssl")):
        return "ssl=False does not check who answers"
    if seen.name in ("jwt.decode", "jose.jwt.decode"):
        options = keyword(seen.node, "options")
        unchecked = isinstance(options, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and is_constant(value, False)
            for key, value in zip(options.keys, options.values, strict=True)
        )
        algorithms = keyword(seen.node, "algorithms")
        if (
            unchecked
            or is_constant(keyword(seen.node, "verify"), False)
            or (algorithms is not None and "'none'" in ast.unparse(algorithms).lower())
        ):
            return "the token's signature is not checked"
    policy = ast.unparse(seen.node.args[0]) if seen.last == "set_missing_host_key_policy" and seen.node.args else ""
    if re.search(r"(AutoAdd|Warning)Policy", policy):
        return "an unknown host is trusted"
    certs = keyword(seen.node, "cert_reqs")
    return "cert_reqs does not check who answers" if certs is not None and "CERT_NONE" in ast.unparse(certs) else ""


def _xml(seen: CallView) -> str:
    if _XML.match(seen.name) and seen.node.args and not is_constant(seen.node.args[0]):
        return f"{seen.last} expands entities of a stranger's XML; use defusedxml"
    entities = is_constant(keyword(seen.node, "resolve_entities"), True)
    if seen.name == "lxml.etree.XMLParser" and (entities or is_constant(keyword(seen.node, "no_network"), False)):
        return "this parser follows entities of a stranger's XML"
    return ""


def _random(seen: CallView) -> str:
    if seen.name in _RANDOM and _TOKENS.search(seen.around):
        return f"{seen.name} can be foretold; use the module secrets"
    return ""


def _debug(seen: CallView) -> str:
    if seen.last == "run" and is_constant(keyword(seen.node, "debug"), True):
        web = any(
            item.partition(".")[0] in ("flask", "bottle", "dash", "quart", "sanic")
            for item in seen.source.names.known.values()
        )
        owner = seen.name.rpartition(".")[0].rpartition(".")[2]
        if web or owner in ("app", "application", "server"):
            return "debug=True lets whoever sees an error page run code"
    return ""


def _permissions(seen: CallView) -> str:
    if seen.last not in ("chmod", "fchmod", "lchmod", "mkfifo", "umask"):
        return ""
    if seen.last == "umask":
        open_to_all = seen.name == "os.umask" and is_constant(seen.node.args[0] if seen.node.args else None)
        zero = open_to_all and isinstance(seen.node.args[0], ast.Constant) and seen.node.args[0].value == 0
        return "files that are made from here on may be changed by anybody" if zero else ""
    given = argument(seen.node, 1 if seen.name.startswith("os.") else 0, "mode")
    if isinstance(given, ast.Constant) and isinstance(given.value, int) and given.value & 0o002:
        return f"anybody may change this file (mode {given.value:o})"
    if given is not None and re.search(r"S_IRWXO|S_IWOTH", ast.unparse(given)):
        return "anybody may change this file"
    return ""


def _archive(seen: CallView) -> str:
    if seen.last not in ("extractall", "extract") or not isinstance(seen.node.func, ast.Attribute):
        return ""
    owner = seen.node.func.value
    is_tar = (isinstance(owner, ast.Name) and owner.id in seen.archives) or (
        isinstance(owner, ast.Call) and seen.source.names.dotted(owner.func).startswith("tarfile.")
    )
    given = keyword(seen.node, "filter")
    safe = given is not None and not is_constant(given, None, "fully_trusted")
    if isinstance(given, ast.Constant) and given.value == "fully_trusted":
        safe = False
    if not is_tar or safe or keyword(seen.node, "members") is not None:
        return ""
    return 'a tar archive may write anywhere; pass filter="data"'


def _templates(seen: CallView) -> str:
    last = seen.last
    if seen.name in ("jinja2.Environment", "jinja2.environment.Environment", "jinja2.sandbox.Environment"):
        given = keyword(seen.node, "autoescape")
        if given is None or is_constant(given, False):
            return "what is put into these templates is not escaped; pass autoescape=select_autoescape()"
        return ""
    first = seen.node.args[0] if seen.node.args else None
    loose = first is not None and not is_constant(first) and not (isinstance(first, ast.Name) and first.id.isupper())
    if loose and (seen.name in ("flask.render_template_string", "jinja2.Template") or last == "render_template_string"):
        return "whoever writes this template runs code"
    if loose and seen.name in ("django.utils.safestring.mark_safe", "markupsafe.Markup", "flask.Markup"):
        return "this is shown without being escaped" if not _is_markup_of_constants(first) else ""
    return ""


def _is_markup_of_constants(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("escape", "format_html")
    )


def _ciphers(seen: CallView) -> str:
    if re.search(r"\b(DES3?|ARC[24]|Blowfish|XOR|IDEA|TripleDES|CAST5|RC4)(\.new)?$", seen.name) and re.match(
        r"(Crypto|Cryptodome|cryptography)\b", seen.name
    ):
        return f"{seen.name.rpartition('.')[0].rpartition('.')[2] or seen.last} is a broken cipher; use AES-GCM"
    if seen.last == "ECB" and "modes" in seen.name:
        return "ECB shows the pattern of what it hides; use GCM"
    if seen.last == "new" and any(isinstance(arg, ast.Attribute) and arg.attr == "MODE_ECB" for arg in seen.node.args):
        return "ECB shows the pattern of what it hides; use GCM"
    size = argument(seen.node, 1, "key_size", "bits") or argument(seen.node, 0, "bits")
    bits = size.value if isinstance(size, ast.Constant) and isinstance(size.value, int) else 2048
    made = seen.last in ("generate_private_key", "generate") and re.search(r"\b(rsa|dsa|RSA|DSA)\b", seen.name)
    return f"a key of {bits} bits is too short" if made and bits < 2048 else ""


def _plain_services(seen: CallView) -> str:
    if seen.name in ("telnetlib.Telnet", "ftplib.FTP"):
        return f"{seen.name} sends passwords in the clear"
    if seen.name == "logging.config.listen":
        return "whoever reaches this port runs code"
    return ""


RULES: Mapping[str, tuple[Rule, Risk]] = {
    "unsafe-deserialisation": (_unpickles, Risk.high),
    "unsafe-yaml": (_yaml, Risk.high),
    "unsafe-temporary-file": (_temporary, Risk.medium),
    "weak-hash": (_weak_hash, Risk.high),
    "unverified-connection": (_unverified, Risk.high),
    "unsafe-xml": (_xml, Risk.medium),
    "foreseeable-random": (_random, Risk.high),
    "debug-server": (_debug, Risk.high),
    "open-permissions": (_permissions, Risk.medium),
    "unsafe-archive": (_archive, Risk.high),
    "unsafe-template": (_templates, Risk.high),
    "weak-cipher": (_ciphers, Risk.high),
    "plain-service": (_plain_services, Risk.medium),
}


def dangerous_calls(sources: Sequence[PythonSource]) -> list[Finding]:
    """Find every call in these files that violates a rule."""
    return [item for source in sources if source.tree is not None for item in _of(source)]


def _of(source: PythonSource) -> Iterator[Finding]:
    archives = frozenset(_archives(source)) if "tarfile" in source.text else frozenset[str]()
    for node in source.all(ast.Call):
        func = node.func
        if (func.attr if isinstance(func, ast.Attribute) else "") in _COMMON and not node.keywords:
            continue
        name = source.names.called(node)
        seen = CallView(node, name, name.rpartition(".")[2], source, archives)
        for rule, (judge, risk) in RULES.items():
            if words := judge(seen):
                yield source.finding(TOOL, rule, node.lineno, words, FindingKind.dangerous_call, risk)
                break
    for other in source.all(ast.Assert, ast.Assign):
        yield from _without_a_call(other, source)


def _target(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _archives(source: PythonSource) -> Iterator[str]:
    for node in source.all(ast.arg):
        if node.annotation is not None and source.names.dotted(node.annotation) == "tarfile.TarFile":
            yield node.arg
    opening = ("tarfile.open", "tarfile.TarFile", "tarfile.TarFile.open")
    for node in source.all(ast.Assign, ast.withitem):
        targets = node.targets if isinstance(node, ast.Assign) else [node.optional_vars]
        value = node.value if isinstance(node, ast.Assign) else node.context_expr
        for target in targets:
            opened = isinstance(value, ast.Call) and source.names.dotted(value.func)
            if isinstance(target, ast.Name) and opened in opening:
                yield target.id


def _without_a_call(node: ast.AST, source: PythonSource) -> Iterator[Finding]:
    """Check statements that are dangerous without a call: an assert as a guard, a check that is disabled."""
    rule = words = ""
    risk = Risk.high
    if isinstance(node, ast.Assert) and not source.is_test and _RIGHTS.search(ast.unparse(node.test)):
        rule, risk = "assert-guards", Risk.medium
        words = "an assert does not guard: python -O leaves it out; raise an error instead"
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        target, value = node.targets[0], node.value
        if target.attr in ("verify", "check_hostname") and is_constant(value, False):
            rule, words = "unverified-connection", f"{target.attr} = False does not check who answers"
        elif target.attr == "verify_mode" and source.names.dotted(value).endswith("CERT_NONE"):
            rule, words = "unverified-connection", "CERT_NONE does not check who answers"
        elif target.attr == "_create_default_https_context":
            rule, words = "unverified-connection", "no connection checks who answers any more"
        elif target.attr == "debug" and is_constant(value, True) and source.names.dotted(target.value) == "app":
            rule, words = "debug-server", "debug = True lets whoever sees an error page run code"
    if rule:
        yield source.finding(TOOL, rule, node.lineno, words, FindingKind.dangerous_call, risk)  # type: ignore[attr-defined]


def blocked_calls(source: PythonSource, names: Sequence[str]) -> list[Finding]:
    """Find calls of these functions, by their full names, anywhere in the file."""
    refused = frozenset(names)
    return [
        source.finding("blocked", name, node.lineno, f"{name} is not to be called here (checks.block)",
                       FindingKind.dangerous_call, Risk.high)
        for node in source.all(ast.Call)
        if (name := source.names.called(node)) in refused
    ]  # fmt: skip

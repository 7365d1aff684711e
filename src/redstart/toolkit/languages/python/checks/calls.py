"""Find dangerous calls. Each rule also knows what makes the same call harmless."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.languages.python.checks.source import PythonSource, get_argument, get_keyword, is_constant

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
_HTTP_NAMES = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "Client",
                         "AsyncClient", "Session", "send", "PoolManager"})  # fmt: skip


_COMMON_METHODS = frozenset({"append", "get", "join", "format", "items", "split", "strip", "startswith", "pop", "add",
                             "keys", "extend", "replace", "update", "values", "encode", "info", "debug"})  # fmt: skip
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
        names: list[str] = []
        node: ast.AST | None = self.node
        while node is not None:
            parent = self.source.parents.get(node)
            match parent:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    names.append(parent.name)
                case ast.Assign():
                    names += map(_get_target_name, parent.targets)
                case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign():
                    names.append(_get_target_name(parent.target))
                case ast.keyword():
                    names.append(parent.arg or "")
                case ast.Dict():
                    pairs = zip(parent.keys, parent.values, strict=True)
                    names += [str(key.value) for key, value in pairs if value is node and isinstance(key, ast.Constant)]
                case _:
                    pass
            node = parent
        return " ".join(names)


Rule = Callable[[CallView], str]
"""Describes what is wrong with a call; empty if nothing is."""


def _check_unpickling(call: CallView) -> str:
    if call.name == "numpy.load":
        return (
            "numpy.load with allow_pickle runs code from the file"
            if is_constant(get_keyword(call.node, "allow_pickle"), True)
            else ""
        )
    if call.name == "torch.load":
        is_safe = is_constant(get_keyword(call.node, "weights_only"), True)
        return "" if is_safe else "torch.load runs code from the file; pass weights_only=True"
    if call.name not in _UNPICKLES:
        return ""
    arg = call.node.args[0] if call.node.args else None
    if isinstance(arg, ast.Call) and call.source.names.get_full_name(arg.func).rpartition(".")[2] == "dumps":
        return ""  # a copy made in place
    if call.name.startswith("marshal") and is_constant(arg):
        return ""
    return f"{call.name} runs code from what it reads; use a format that holds data only"


def _check_yaml(call: CallView) -> str:
    if call.name in ("yaml.unsafe_load", "yaml.unsafe_load_all"):
        return "yaml.unsafe_load makes objects of any kind; use yaml.safe_load"
    if call.name not in ("yaml.load", "yaml.load_all"):
        return ""
    loader = get_argument(call.node, 1, "Loader")
    if loader is not None and call.source.names.get_full_name(loader).rpartition(".")[2] in _SAFE_LOADERS:
        return ""
    if isinstance(loader, ast.Name) and _is_safe_loader(loader.id, call.source):
        return ""
    return "yaml.load makes objects of any kind; use yaml.safe_load"


def _is_safe_loader(name: str, source: PythonSource) -> bool:
    """Whether a name is a class of the module that derives from a safe loader."""
    return any(
        node.name == name
        and any(source.names.get_full_name(base).rpartition(".")[2] in _SAFE_LOADERS for base in node.bases)
        for node in source.iter_nodes(ast.ClassDef)
    )


def _check_temporary_file(call: CallView) -> str:
    is_unsafe = call.name in ("tempfile.mktemp", "os.tempnam", "os.tmpnam")
    return f"{call.name} names a file that somebody else may make first; use tempfile.mkstemp" if is_unsafe else ""


def _check_weak_hash(call: CallView) -> str:
    name = call.name
    if name == "hashlib.new":
        arg = call.node.args[0] if call.node.args else None
        name = f"hashlib.{arg.value}".lower() if isinstance(arg, ast.Constant) else name
    if name not in ("hashlib.md5", "hashlib.sha1", "hashlib.md4", "Crypto.Hash.MD5.new", "Crypto.Hash.SHA.new"):
        return ""
    if is_constant(get_keyword(call.node, "usedforsecurity"), False):
        return ""
    call_text = ast.unparse(call.node)
    if not (_PASSWORDS.search(call.around) or _PASSWORDS.search(call_text)):
        return ""
    return f"{name} is too weak to keep a secret; use hashlib.scrypt or hmac with sha256"


def _check_unverified_connection(call: CallView) -> str:
    if call.name in ("ssl._create_unverified_context", "ssl.wrap_socket"):
        return "this connection does not check who answers"
    if is_constant(get_keyword(call.node, "verify"), False) and (_WEB.match(call.name) or call.last in _HTTP_NAMES):
        return "verify=False does not check who answers"
    is_aiohttp = call.last in _HTTP_NAMES | {"TCPConnector", "ws_connect"} and "aiohttp" in call.source.text
    if is_aiohttp and any(is_constant(get_keyword(call.node, name), False) for name in ("ssl", "verify_ssl")):
        return "ssl=False does not check who answers"
    if call.name in ("jwt.decode", "jose.jwt.decode"):
        options = get_keyword(call.node, "options")
        is_unchecked = isinstance(options, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "verify_signature" and is_constant(value, False)
            for key, value in zip(options.keys, options.values, strict=True)
        )
        algorithms = get_keyword(call.node, "algorithms")
        if (
            is_unchecked
            or is_constant(get_keyword(call.node, "verify"), False)
            or (algorithms is not None and "'none'" in ast.unparse(algorithms).lower())
        ):
            return "the token's signature is not checked"
    policy = ast.unparse(call.node.args[0]) if call.last == "set_missing_host_key_policy" and call.node.args else ""
    if re.search(r"(AutoAdd|Warning)Policy", policy):
        return "an unknown host is trusted"
    certs = get_keyword(call.node, "cert_reqs")
    return "cert_reqs does not check who answers" if certs is not None and "CERT_NONE" in ast.unparse(certs) else ""


def _check_xml(call: CallView) -> str:
    if _XML.match(call.name) and call.node.args and not is_constant(call.node.args[0]):
        return f"{call.last} expands entities of a stranger's XML; use defusedxml"
    entities = is_constant(get_keyword(call.node, "resolve_entities"), True)
    if call.name == "lxml.etree.XMLParser" and (entities or is_constant(get_keyword(call.node, "no_network"), False)):
        return "this parser follows entities of a stranger's XML"
    return ""


def _check_random(call: CallView) -> str:
    if call.name in _RANDOM and _TOKENS.search(call.around):
        return f"{call.name} can be foretold; use the module secrets"
    return ""


def _check_debug_server(call: CallView) -> str:
    if call.last == "run" and is_constant(get_keyword(call.node, "debug"), True):
        web = any(
            item.partition(".")[0] in ("flask", "bottle", "dash", "quart", "sanic")
            for item in call.source.names.full_names.values()
        )
        owner = call.name.rpartition(".")[0].rpartition(".")[2]
        if web or owner in ("app", "application", "server"):
            return "debug=True lets whoever sees an error page run code"
    return ""


def _check_permissions(call: CallView) -> str:
    if call.last not in ("chmod", "fchmod", "lchmod", "mkfifo", "umask"):
        return ""
    if call.last == "umask":
        open_to_all = call.name == "os.umask" and is_constant(call.node.args[0] if call.node.args else None)
        is_zero = open_to_all and isinstance(call.node.args[0], ast.Constant) and call.node.args[0].value == 0
        return "files that are made from here on may be changed by anybody" if is_zero else ""
    mode_arg = get_argument(call.node, 1 if call.name.startswith("os.") else 0, "mode")
    if isinstance(mode_arg, ast.Constant) and isinstance(mode_arg.value, int) and mode_arg.value & 0o002:
        return f"anybody may change this file (mode {mode_arg.value:o})"
    if mode_arg is not None and re.search(r"S_IRWXO|S_IWOTH", ast.unparse(mode_arg)):
        return "anybody may change this file"
    return ""


def _archive(call: CallView) -> str:
    if call.last not in ("extractall", "extract") or not isinstance(call.node.func, ast.Attribute):
        return ""
    owner = call.node.func.value
    is_tar = (isinstance(owner, ast.Name) and owner.id in call.archives) or (
        isinstance(owner, ast.Call) and call.source.names.get_full_name(owner.func).startswith("tarfile.")
    )
    filter_arg = get_keyword(call.node, "filter")
    is_safe = filter_arg is not None and not is_constant(filter_arg, None, "fully_trusted")
    if isinstance(filter_arg, ast.Constant) and filter_arg.value == "fully_trusted":
        is_safe = False
    if not is_tar or is_safe or get_keyword(call.node, "members") is not None:
        return ""
    return 'a tar archive may write anywhere; pass filter="data"'


def _check_template(call: CallView) -> str:
    function_name = call.last
    if call.name in ("jinja2.Environment", "jinja2.environment.Environment", "jinja2.sandbox.Environment"):
        autoescape = get_keyword(call.node, "autoescape")
        if autoescape is None or is_constant(autoescape, False):
            return "what is put into these templates is not escaped; pass autoescape=select_autoescape()"
        return ""
    template = call.node.args[0] if call.node.args else None
    is_dynamic = (
        template is not None
        and not is_constant(template)
        and not (isinstance(template, ast.Name) and template.id.isupper())
    )
    if is_dynamic and (
        call.name in ("flask.render_template_string", "jinja2.Template") or function_name == "render_template_string"
    ):
        return "whoever writes this template runs code"
    if is_dynamic and call.name in ("django.utils.safestring.mark_safe", "markupsafe.Markup", "flask.Markup"):
        return "this is shown without being escaped" if not _is_escaped_markup(template) else ""
    return ""


def _is_escaped_markup(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("escape", "format_html")
    )


def _check_cipher(call: CallView) -> str:
    if re.search(r"\b(DES3?|ARC[24]|Blowfish|XOR|IDEA|TripleDES|CAST5|RC4)(\.new)?$", call.name) and re.match(
        r"(Crypto|Cryptodome|cryptography)\b", call.name
    ):
        return f"{call.name.rpartition('.')[0].rpartition('.')[2] or call.last} is a broken cipher; use AES-GCM"
    if call.last == "ECB" and "modes" in call.name:
        return "ECB shows the pattern of what it hides; use GCM"
    if call.last == "new" and any(isinstance(arg, ast.Attribute) and arg.attr == "MODE_ECB" for arg in call.node.args):
        return "ECB shows the pattern of what it hides; use GCM"
    size = get_argument(call.node, 1, "key_size", "bits") or get_argument(call.node, 0, "bits")
    bits = size.value if isinstance(size, ast.Constant) and isinstance(size.value, int) else 2048
    is_key_generation = call.last in ("generate_private_key", "generate") and re.search(
        r"\b(rsa|dsa|RSA|DSA)\b", call.name
    )
    return f"a key of {bits} bits is too short" if is_key_generation and bits < 2048 else ""


def _check_plain_service(call: CallView) -> str:
    if call.name in ("telnetlib.Telnet", "ftplib.FTP"):
        return f"{call.name} sends passwords in the clear"
    if call.name == "logging.config.listen":
        return "whoever reaches this port runs code"
    return ""


RULES: Mapping[str, tuple[Rule, Risk]] = {
    "unsafe-deserialisation": (_check_unpickling, Risk.high),
    "unsafe-yaml": (_check_yaml, Risk.high),
    "unsafe-temporary-file": (_check_temporary_file, Risk.medium),
    "weak-hash": (_check_weak_hash, Risk.high),
    "unverified-connection": (_check_unverified_connection, Risk.high),
    "unsafe-xml": (_check_xml, Risk.medium),
    "foreseeable-random": (_check_random, Risk.high),
    "debug-server": (_check_debug_server, Risk.high),
    "open-permissions": (_check_permissions, Risk.medium),
    "unsafe-archive": (_archive, Risk.high),
    "unsafe-template": (_check_template, Risk.high),
    "weak-cipher": (_check_cipher, Risk.high),
    "plain-service": (_check_plain_service, Risk.medium),
}


def find_dangerous_calls(sources: Sequence[PythonSource]) -> list[Finding]:
    """Find every call in these files that violates a rule."""
    return [item for source in sources if source.tree is not None for item in _check_calls(source)]


def _check_calls(source: PythonSource) -> Iterator[Finding]:
    archives = frozenset(_find_archive_names(source)) if "tarfile" in source.text else frozenset[str]()
    for node in source.iter_nodes(ast.Call):
        func = node.func
        if (func.attr if isinstance(func, ast.Attribute) else "") in _COMMON_METHODS and not node.keywords:
            continue
        name = source.names.get_called_name(node)
        call = CallView(node, name, name.rpartition(".")[2], source, archives)
        for rule, (judge, risk) in RULES.items():
            if message := judge(call):
                yield source.build_finding(TOOL, rule, node.lineno, message, FindingKind.dangerous_call, risk)
                break
    for statement in source.iter_nodes(ast.Assert, ast.Assign):
        yield from _without_a_call(statement, source)


def _get_target_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _find_archive_names(source: PythonSource) -> Iterator[str]:
    for node in source.iter_nodes(ast.arg):
        if node.annotation is not None and source.names.get_full_name(node.annotation) == "tarfile.TarFile":
            yield node.arg
    opening = ("tarfile.open", "tarfile.TarFile", "tarfile.TarFile.open")
    for node in source.iter_nodes(ast.Assign, ast.withitem):
        targets = node.targets if isinstance(node, ast.Assign) else [node.optional_vars]
        value = node.value if isinstance(node, ast.Assign) else node.context_expr
        for target in targets:
            function_name = isinstance(value, ast.Call) and source.names.get_full_name(value.func)
            if isinstance(target, ast.Name) and function_name in opening:
                yield target.id


def _without_a_call(node: ast.AST, source: PythonSource) -> Iterator[Finding]:
    """Check statements that are dangerous without a call: an assert as a guard, a check that is disabled."""
    rule = message = ""
    risk = Risk.high
    if isinstance(node, ast.Assert) and not source.is_test and _RIGHTS.search(ast.unparse(node.test)):
        rule, risk = "assert-guards", Risk.medium
        message = "an assert does not guard: python -O leaves it out; raise an error instead"
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        target, value = node.targets[0], node.value
        if target.attr in ("verify", "check_hostname") and is_constant(value, False):
            rule, message = "unverified-connection", f"{target.attr} = False does not check who answers"
        elif target.attr == "verify_mode" and source.names.get_full_name(value).endswith("CERT_NONE"):
            rule, message = "unverified-connection", "CERT_NONE does not check who answers"
        elif target.attr == "_create_default_https_context":
            rule, message = "unverified-connection", "no connection checks who answers any more"
        elif target.attr == "debug" and is_constant(value, True) and source.names.get_full_name(target.value) == "app":
            rule, message = "debug-server", "debug = True lets whoever sees an error page run code"
    if rule:
        yield source.build_finding(TOOL, rule, node.lineno, message, FindingKind.dangerous_call, risk)  # type: ignore[attr-defined]


def find_blocked_calls(source: PythonSource, names: Sequence[str]) -> list[Finding]:
    """Find calls of these functions, by their full names, anywhere in the file."""
    refused = frozenset(names)
    return [
        source.build_finding("blocked", name, node.lineno, f"{name} is not to be called here (checks.block)",
                       FindingKind.dangerous_call, Risk.high)
        for node in source.iter_nodes(ast.Call)
        if (name := source.names.get_called_name(node)) in refused
    ]  # fmt: skip

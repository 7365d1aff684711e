"""Detect environment problems in the output of Python and its runners: failures that no code edit can fix."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.report import Case, Outcome
from redstart.toolkit.base.tracebacks import tracebacks
from redstart.toolkit.languages.python import distributions
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.suites.problems.ground import EnvironmentProblem, ground
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.remedies import start_service
from redstart.toolkit.suites.reading.raised import RaisedException, chain, is_expected

FEW = 2
"""The maximum difference in length between a misspelled name and the intended one."""

_VERDICTS = frozenset({"AssertionError", "Failed", "DID NOT RAISE", "ExceptionGroup"})
"""Exceptions with which a test judges the code itself."""
_CLIENT_ERROR_NAMES = (
    "AMQPConnectionError AutoReconnect ClientConnectionError ClientConnectorDNSError ClientConnectorError ConnectError "
    "ConnectionError ConnectionFailure CouldNotConnect DatabaseError EndpointConnectionError InterfaceError "
    "KafkaConnectionError MaxRetryError NameResolutionError NewConnectionError NoBrokersAvailable OperationalError "
    "OSError ProxyError ServerSelectionTimeoutError ServiceUnavailable TransportError URLError"
)
_CLIENT_ERRORS = frozenset(_CLIENT_ERROR_NAMES.split())
"""Exception names of client libraries that connect to servers."""
_REFUSED = re.compile(
    r"[Cc]onnection refused|\[Errno (?:111|61)\]|Error (?:111|61) connecting|could not connect to server"
    r"|Can't connect to (?:local )?MySQL|Connect call failed|All connection attempts failed|NoBrokersAvailable"
    r"|Could not connect to the endpoint URL|Couldn't connect to \S+:\d+|Cannot connect to host"
)
_NO_NAME = re.compile(
    r"Name or service not known|Temporary failure in name resolution|nodename nor servname|getaddrinfo failed"
    r"|No address associated with hostname|could not translate host name|NameResolutionError"
)
_NO_ROUTE = re.compile(r"Network is unreachable|No route to host")
_PLACE = re.compile(
    r"(?:address|sockaddr|sa) = \('([^']+)', (\d+)"
    r"|(?:host='?|host \"?|server at \"|on ')([\w.:-]+)['\"]?,? ?\(?port[ =](\d+)"
    r"|(?:connecting to|connect to(?: host)?|failed \(') ?'?([\w.-]+)(?::|', )(\d+)"
)
_SERVES = re.compile(
    r"HTTPServer\(|TCPServer\(|UDPServer\(|\.listen\(|create_server\(|start_server\(|uvicorn\.|make_server\(|TestServer\("
    r"|httpserver\b|live_server\b"
)
_ERRNO = re.compile(r"\[Errno (-?\d+)\]")
_FILE = re.compile(r": b?['\"]([^'\"]+)['\"]")
_NO_MODULE = re.compile(r"^No module named '?([\w.]+)'?")
_NO_LIBRARY = re.compile(r"^(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_STATUS_127 = re.compile(r"^Command '?\[?'?\"?([\w.+-]+)[^\n]* returned non-zero exit status 127\b")
_PYTHON_NEEDED = re.compile(
    r"[Rr]equires Python ?(?:>=? ?)?\d|Python ?(?:>=? ?)?\d[\d.]*\+?(?: or (?:later|newer|higher|above))? is required"
    r"|[Uu]nsupported Python version|Python \d[\d.]* is not supported"
)
_NO_DISPLAY = re.compile(r"no display name|couldn't connect to display|[Cc]annot connect to (?:X|display)|DISPLAY")
_DISPLAY_ERRORS = ("NoSuchDisplayException", "DisplayConnectionError", "DisplayNameError")
_LOCALE_NAME = re.compile(r"[a-z]{2,3}(?:_[A-Z]{2})?(?:\.(?:UTF-?8|utf-?8|ISO-?8859-\d+))?(?:@\w+)?")
_FIXTURE = re.compile(r"\bfixture '(\w+)' not found")
_MARKER = re.compile(r"^'(\w+)' not found in `markers` configuration option")
_SETS_VARIABLE = re.compile(
    r"(?:setenv|delenv|environ\.(?:pop|setdefault|__setitem__))\(\s*['\"](\w+)['\"]"
    r"|environ\[['\"](\w+)['\"]\]\s*=[^=]|del os\.environ\[['\"](\w+)['\"]\]"
)


class RaisedCase(NamedTuple):
    """The input of a rule: one exception of a case's chain."""

    raised: RaisedException
    project: ProjectView
    case: Case


def of_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    return _for(project, _of_case(case, project))


def of_output(problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:
    if problem is SuiteProblem.no_pytest:
        return _for(project, ground("missing_module", "pytest is not installed", distributions.install("pytest")))
    return _for(project, _usage(output))


def of_start(output: str, project: ProjectView) -> EnvironmentProblem | None:
    text = re.sub(r"^INTERNALERROR> ?", "", output, flags=re.MULTILINE)
    where = re.search(r"ImportError while loading conftest '([^'\n]*)'", text)
    conftest = PurePosixPath(where[1]).name if where else ""
    broken = Case(id=conftest or "run", outcome=Outcome.error, detail=text[where.start() :] if where else text)
    found = of_case(broken, project)
    if found is None or not conftest or conftest in found.what:
        return found
    return found.model_copy(update={"what": f"{found.what} (imported by {conftest})"})


def _for(project: ProjectView, found: EnvironmentProblem | None) -> EnvironmentProblem | None:
    """Adapt an install remedy to the interpreter that lacks the package."""
    remedy = distributions.install_with(project.python, found.remedy) if found else ""
    return found.model_copy(update={"remedy": remedy}) if found else None


def _of_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    if found := _plugin(case, project) or _broken_test(case, project):
        return found
    if is_expected(case):
        return None
    links = chain(case)
    while links:
        raised = links.pop()
        if raised.type in _VERDICTS or raised.path.endswith("unittest/mock.py"):
            return None
        own = raised.by_statement and bool(project.local(raised.path))
        rules = (_wrong_python,) if own else _RULES
        for rule in rules:
            if found := rule(RaisedCase(raised, project, case)):
                return found
        if raised.handling and not own:
            return None  # the fault is in the handler itself
    return None


def _near(name: str, others: Iterable[str], cutoff: float) -> bool:
    """Whether one of the other names was meant: it has the same or nearly the same letters."""
    alike = (other for other in others if other != name and abs(len(other) - len(name)) <= FEW)
    return any(
        sorted(other) == sorted(name) or difflib.SequenceMatcher(None, name, other).ratio() >= cutoff for other in alike
    )


def _errno(raised: RaisedException) -> int | None:
    found = _ERRNO.match(raised.text)
    return int(found[1]) if found else None


def _plugin(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    told = f"{case.message}\n{case.detail}"
    message = case.message.removeprefix("Failed: ")
    if message.startswith("async def functions are not natively supported"):
        what, package = "async test functions need a plugin", "pytest-asyncio"
        if "anyio" in project.tests_of(case):
            package = "anyio"
    elif found := _MARKER.match(message):
        what, package = f"marker {found[1]} is of a plugin", distributions.MARKERS.get(found[1], "")
    elif case.outcome is Outcome.error and (found := _FIXTURE.search(told)) and "available fixtures:" in told:
        name, package = found[1], distributions.FIXTURES.get(found[1], "")
        if not package and name in distributions.GENERIC_FIXTURES:
            uses = project.declares("django") or "manage.py" in project.paths or "django" in project.tests_of(case)
            package = distributions.GENERIC_FIXTURES[name] if uses else ""
        what = f"fixture {name} is of a plugin"
    else:
        return None
    return (
        ground("missing_fixture_plugin", f"{what} that is not installed", distributions.install(package))
        if package
        else None
    )


def _broken_test(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    links = chain(case)
    if not links or links[-1].type not in ("SyntaxError", "IndentationError", "TabError"):
        return None
    unread = [frame for traceback in tracebacks(case.detail) for frame in traceback.frames if frame.unread]
    path = unread[-1].path if unread else ""
    path = project.local(path) or (path.rpartition("/")[2] if not project.paths else "")
    if not path or not is_test_path(path):
        return None
    return ground("broken_test", f"{path}, line {unread[-1].number}: {links[-1].text or links[-1].type}")


def _usage(output: str) -> EnvironmentProblem | None:
    if found := re.search(r"^\S.*: error: unrecognized arguments: (.+)$", output, re.MULTILINE):
        words = found[1].split()
        packages = [
            package for word in words for start, package in distributions.OPTIONS.items() if word.startswith(start)
        ]
        remedy = distributions.install(" ".join(dict.fromkeys(packages))) if packages else ""
        return ground("unknown_option", f"pytest does not know {found[1]}", remedy or _CONFIGURE)
    if found := re.search(r"^ERROR: (?:.*: )?Unknown config option: (\w+)", output, re.MULTILINE):
        packages = [package for start, package in distributions.SETTINGS.items() if found[1].startswith(start)]
        remedy = distributions.install(packages[0]) if packages else _CONFIGURE
        return ground("unknown_option", f"pytest does not know its setting {found[1]}", remedy)
    if found := re.search(r"^ERROR: Missing required plugins: (.+)$", output, re.MULTILINE):
        packages = " ".join(shlex.quote(part) for part in found[1].split(", "))
        return ground("missing_fixture_plugin", f"required plugins: {found[1]}", distributions.install(packages))
    if found := re.search(r"requires (pytest-[\d.]+), actual (pytest-[\d.]+)", output):
        wanted = found[1].replace("-", ">=")
        return ground("missing_module", f"the project needs {found[1]}", distributions.install(f"'{wanted}'"))
    if found := re.search(r'^(?:ERROR|ImportError): Error importing plugin "([\w.]+)": No mod', output, re.MULTILINE):
        return ground(
            "missing_module", f"the pytest plugin {found[1]} is not installed", distributions.install(found[1])
        )
    return None


_CONFIGURE = "install the pytest plugin that brings it, or name another command with --test-cmd"


def _wrong_python(seen: RaisedCase) -> EnvironmentProblem | None:
    raised = seen.raised
    if raised.type not in ("RuntimeError", "ImportError", "SystemExit", "Exception"):
        return None
    return (
        ground("wrong_python", raised.text, distributions.NAME_PYTHON) if _PYTHON_NEEDED.search(raised.text) else None
    )


def _connection(seen: RaisedCase) -> EnvironmentProblem | None:
    raised = seen.raised
    errno = _errno(raised)
    client = raised.type in _CLIENT_ERRORS
    text = raised.text
    if (raised.type == "gaierror" and errno is not None) or (client and _NO_NAME.search(text)):
        hosts: list[str] = re.findall(r"\bhost = '([^']+)'", raised.entry)
        if any(_near(host, ("localhost",), 0.85) for host in hosts):
            return None
        return ground("dns", f"no name resolution ({text})")
    if (raised.type == "OSError" and errno in (101, 113, 51, 65)) or (client and _NO_ROUTE.search(text)):
        return ground("network_unreachable", text)
    if not (raised.type == "ConnectionRefusedError" and errno in (111, 61)) and not (client and _REFUSED.search(text)):
        return None
    if _SERVES.search(seen.project.tests_of(seen.case)):
        return None  # the test starts the server itself
    found = _PLACE.search(text) or _PLACE.search(raised.entry)
    place = ":".join(part for part in found.groups() if part) if found else ""
    what = f"nothing answers at {place}" if place else text
    return ground("refused_connection", what, start_service(place))


def _files(seen: RaisedCase) -> EnvironmentProblem | None:
    raised, root = seen.raised, seen.project.root
    errno, found = _errno(raised), _FILE.search(raised.text)
    path = found[1] if found else ""
    if raised.type == "OSError" and errno in (28, 122):
        return ground("full_disk", raised.text)
    if raised.type in ("OperationalError", "Error") and raised.text == "database or disk is full":
        return ground("full_disk", raised.text)
    if raised.type == "PermissionError" and errno == 1:
        return ground("permission", raised.text)
    if raised.type == "PermissionError" and errno == 13 and not path:
        return ground("permission", raised.text) if "bind" in raised.line + raised.entry else None
    refused = (raised.type == "PermissionError" and errno == 13) or (raised.type == "OSError" and errno == 30)
    if not refused or raised.path.endswith("subprocess.py") or not path.startswith("/"):
        return None
    own = ("/tmp/", "/var/tmp/", *((f"{root}/",) if root else ()))  # noqa: S108  (tests may write here)
    return None if path.startswith(own) else ground("denied_path", raised.text)


def _program(seen: RaisedCase) -> EnvironmentProblem | None:
    raised = seen.raised
    name = ""
    if not raised.path.endswith("subprocess.py"):
        return None
    if raised.type == "FileNotFoundError" and _errno(raised) == 2 and (found := _FILE.search(raised.text)):
        name = "" if re.search(rf"\bcwd = '{re.escape(found[1])}'", raised.entry) else found[1]
    elif raised.type == "CalledProcessError" and (found := _STATUS_127.match(raised.text)):
        name = found[1]
    if not re.fullmatch(r"[\w.+-]+", name) or _near(name, distributions.PROGRAMS, 0.8):
        return None
    return ground("missing_binary", f"the program {name} is not installed", f"install {name} on this machine")


def _machine(seen: RaisedCase) -> EnvironmentProblem | None:
    """Check for problems with the display, the locale and time zones."""
    raised = seen.raised
    if raised.type in _DISPLAY_ERRORS or (raised.type == "TclError" and _NO_DISPLAY.search(raised.text)):
        return ground("missing_display", raised.text or "there is no display")
    if raised.type == "Error" and raised.text == "unsupported locale setting" and raised.path.endswith("locale.py"):
        found = re.search(r"\blocale = '([^']*)'", raised.entry)
        if found and not _LOCALE_NAME.fullmatch(found[1]):
            return None
        return ground("locale", f"the locale {found[1]} is not there" if found else raised.text)
    if raised.type == "ZoneInfoNotFoundError":
        found = re.search(r"No time zone found with key ([\w/+-]+)", raised.text)
        known = found is not None and found[1] in distributions.ZONES
        what = f"there is no data of the time zone {found[1]}" if found and known else ""
        return ground("missing_tz", what, distributions.install("tzdata")) if what else None
    return None


def _variable(seen: RaisedCase) -> EnvironmentProblem | None:
    raised = seen.raised
    at_environ = raised.path in ("<frozen os>", "os.py") or raised.path.endswith("/os.py")
    if raised.type != "KeyError" or not at_environ:
        return None
    name = raised.text.strip("'\"")
    text = seen.project.tests_of(seen.case)
    set_by_tests = {item for found in _SETS_VARIABLE.findall(text) for item in found if item}
    if "patch.dict(" in text and "environ" in text:
        set_by_tests |= set(re.findall(r"['\"]([A-Z][A-Z0-9_]+)['\"]", text)) | {name}
    usual = ("HOME", "PATH", "LANG", "TMPDIR", "SHELL", "USER")
    if name in set_by_tests or _near(name, (*set_by_tests, *usual), 0.85):
        return None
    remedy = f"give {name} a value in the command: --test-cmd 'env {name}=... pytest'"
    return ground("missing_env", f"the environment variable {name} is not set", remedy)


def _module(seen: RaisedCase) -> EnvironmentProblem | None:
    raised, project = seen.raised, seen.project
    if raised.type not in ("ModuleNotFoundError", "ImportError"):
        return None
    if found := _NO_LIBRARY.match(raised.text):
        return ground("missing_module", f"the system library {found[1]} is not there", f"install what holds {found[1]}")
    found = _NO_MODULE.match(raised.text)
    if found is None:
        return None
    top, _, part = found[1].partition(".")
    if top in project.modules:
        return None
    if top in distributions.SYSTEM_PARTS:
        needs = f"install {distributions.SYSTEM_PARTS[top]} for the interpreter that runs the tests"
        return ground("missing_module", f"this Python was built without {top}", needs)
    package = distributions.DISTRIBUTIONS.get(top, top.replace("_", "-"))
    if part:
        # The package exists but a part of it does not: a wrong import, unless the import is not the project's.
        apart = top in distributions.NAMESPACES
        if not apart and (top in sys.stdlib_module_names or "site-packages/" not in raised.path):
            return None
        package = found[1].replace(".", "-") if apart else package
    sure = top in distributions.DISTRIBUTIONS or top in distributions.WELL_KNOWN or project.declares(top)
    doubtful = _near(top, project.modules, 0.8) or _near(top, sys.stdlib_module_names, 0.85)
    computed = raised.path.startswith("<frozen importlib") or raised.path.endswith("importlib/__init__.py")
    if not sure and (doubtful or computed or top in sys.stdlib_module_names):
        return None
    return ground("missing_module", f"{found[1]} is not installed", distributions.install(package))


_RULES = (_module, _connection, _files, _program, _machine, _variable, _wrong_python)

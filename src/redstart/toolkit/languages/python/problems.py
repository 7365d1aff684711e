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
from redstart.toolkit.base.tracebacks import parse_tracebacks
from redstart.toolkit.languages.python import distributions
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, create_problem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.remedies import BROKEN_TEST, start_service
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.reading.exceptions import RaisedException, is_expected, list_exceptions

MAX_LENGTH_DIFFERENCE = 2
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
_NO_METADATA = re.compile(r"^No package metadata was found for ([\w.-]+)$")
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

    exception: RaisedException
    project: ProjectView
    case: Case


def classify_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    return _adapt_remedy(project, _diagnose_case(case, project))


def classify_output(problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:
    if problem is SuiteProblem.no_pytest:
        return _adapt_remedy(
            project, create_problem("missing_module", "pytest is not installed", distributions.install("pytest"))
        )
    return _adapt_remedy(project, _check_usage(output))


def classify_startup(output: str, project: ProjectView) -> EnvironmentProblem | None:
    text = re.sub(r"^INTERNALERROR> ?", "", output, flags=re.MULTILINE)
    match = re.search(r"ImportError while loading conftest '([^'\n]*)'", text)
    conftest = PurePosixPath(match[1]).name if match else ""
    case = Case(id=conftest or "run", outcome=Outcome.error, detail=text[match.start() :] if match else text)
    problem = classify_case(case, project)
    if problem is None or not conftest or conftest in problem.what:
        return problem
    return problem.model_copy(update={"what": f"{problem.what} (imported by {conftest})"})


def _adapt_remedy(project: ProjectView, problem: EnvironmentProblem | None) -> EnvironmentProblem | None:
    """Adapt an install remedy to the interpreter that lacks the package."""
    remedy = distributions.install_with(project.python, problem.remedy) if problem else ""
    return problem.model_copy(update={"remedy": remedy}) if problem else None


def _diagnose_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    if problem := _check_plugin(case, project) or _check_broken_test(case, project):
        return problem
    if is_expected(case):
        return None
    links = list_exceptions(case)
    while links:
        exception = links.pop()
        if exception.type in _VERDICTS or exception.path.endswith("unittest/mock.py"):
            return None
        is_own = exception.by_statement and bool(project.get_relative_path(exception.path))
        rules = (_check_python_version,) if is_own else _RULES
        for rule in rules:
            if problem := rule(RaisedCase(exception, project, case)):
                return problem
        if exception.handling and not is_own:
            return None  # the fault is in the handler itself
    return None


def _is_near_name(name: str, known_names: Iterable[str], cutoff: float) -> bool:
    """Whether one of the other names was meant: it has the same or nearly the same letters."""
    alike = (
        candidate
        for candidate in known_names
        if candidate != name and abs(len(candidate) - len(name)) <= MAX_LENGTH_DIFFERENCE
    )
    return any(
        sorted(candidate) == sorted(name) or difflib.SequenceMatcher(None, name, candidate).ratio() >= cutoff
        for candidate in alike
    )


def _parse_errno(exception: RaisedException) -> int | None:
    match = _ERRNO.match(exception.text)
    return int(match[1]) if match else None


def _check_plugin(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    output = f"{case.message}\n{case.detail}"
    message = case.message.removeprefix("Failed: ")
    if message.startswith("async def functions are not natively supported"):
        description, package = "async test functions need a plugin", "pytest-asyncio"
        if "anyio" in project.read_tests(case):
            package = "anyio"
    elif match := _MARKER.match(message):
        description, package = f"marker {match[1]} is of a plugin", distributions.MARKERS.get(match[1], "")
    elif case.outcome is Outcome.error and (match := _FIXTURE.search(output)) and "available fixtures:" in output:
        name, package = match[1], distributions.FIXTURES.get(match[1], "")
        if not package and name in distributions.GENERIC_FIXTURES:
            uses = project.is_declared("django") or "manage.py" in project.paths or "django" in project.read_tests(case)
            package = distributions.GENERIC_FIXTURES[name] if uses else ""
        description = f"fixture {name} is of a plugin"
    else:
        return None
    return (
        create_problem("missing_fixture_plugin", f"{description} that is not installed", distributions.install(package))
        if package
        else None
    )


def _check_broken_test(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    links = list_exceptions(case)
    if not links or links[-1].type not in ("SyntaxError", "IndentationError", "TabError"):
        return None
    unreadable_frames = [
        frame for traceback in parse_tracebacks(case.detail) for frame in traceback.frames if frame.is_unparsed
    ]
    path = unreadable_frames[-1].path if unreadable_frames else ""
    path = project.get_relative_path(path) or (path.rpartition("/")[2] if not project.paths else "")
    if not path or not is_test_path(path):
        return None
    return create_problem(
        BROKEN_TEST, f"{path}, line {unreadable_frames[-1].number}: {links[-1].text or links[-1].type}"
    )


def _check_usage(output: str) -> EnvironmentProblem | None:
    if match := re.search(r"^\S.*: error: unrecognized arguments: (.+)$", output, re.MULTILINE):
        arguments = match[1].split()
        packages = [
            package
            for argument in arguments
            for start, package in distributions.OPTIONS.items()
            if argument.startswith(start)
        ]
        remedy = distributions.install(" ".join(dict.fromkeys(packages))) if packages else ""
        return create_problem("unknown_option", f"pytest does not know {match[1]}", remedy or _CONFIGURE)
    if match := re.search(r"^ERROR: (?:.*: )?Unknown config option: (\w+)", output, re.MULTILINE):
        packages = [package for start, package in distributions.SETTINGS.items() if match[1].startswith(start)]
        remedy = distributions.install(packages[0]) if packages else _CONFIGURE
        return create_problem("unknown_option", f"pytest does not know its setting {match[1]}", remedy)
    if match := re.search(r"^ERROR: Missing required plugins: (.+)$", output, re.MULTILINE):
        packages = " ".join(shlex.quote(part) for part in match[1].split(", "))
        return create_problem(
            "missing_fixture_plugin", f"required plugins: {match[1]}", distributions.install(packages)
        )
    if match := re.search(r"requires (pytest-[\d.]+), actual (pytest-[\d.]+)", output):
        requirement = match[1].replace("-", ">=")
        return create_problem(
            "missing_module", f"the project needs {match[1]}", distributions.install(f"'{requirement}'")
        )
    if match := re.search(r'^(?:ERROR|ImportError): Error importing plugin "([\w.]+)": No mod', output, re.MULTILINE):
        return create_problem(
            "missing_module", f"the pytest plugin {match[1]} is not installed", distributions.install(match[1])
        )
    return None


_CONFIGURE = "install the pytest plugin that brings it, or name another command with --test-cmd"


def _check_python_version(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception = raised_case.exception
    if exception.type not in ("RuntimeError", "ImportError", "SystemExit", "Exception"):
        return None
    return (
        create_problem("wrong_python", exception.text, distributions.NAME_PYTHON)
        if _PYTHON_NEEDED.search(exception.text)
        else None
    )


def _check_connection(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception = raised_case.exception
    errno = _parse_errno(exception)
    client = exception.type in _CLIENT_ERRORS
    text = exception.text
    if (exception.type == "gaierror" and errno is not None) or (client and _NO_NAME.search(text)):
        hosts: list[str] = re.findall(r"\bhost = '([^']+)'", exception.entry)
        if any(_is_near_name(host, ("localhost",), 0.85) for host in hosts):
            return None
        return create_problem("dns", f"no name resolution ({text})")
    if (exception.type == "OSError" and errno in (101, 113, 51, 65)) or (client and _NO_ROUTE.search(text)):
        return create_problem("network_unreachable", text)
    if not (exception.type == "ConnectionRefusedError" and errno in (111, 61)) and not (
        client and _REFUSED.search(text)
    ):
        return None
    if _SERVES.search(raised_case.project.read_tests(raised_case.case)):
        return None  # the test starts the server itself
    match = _PLACE.search(text) or _PLACE.search(exception.entry)
    place = ":".join(part for part in match.groups() if part) if match else ""
    description = f"nothing answers at {place}" if place else text
    return create_problem("refused_connection", description, start_service(place))


def _check_files(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception, root = raised_case.exception, raised_case.project.root
    errno, match = _parse_errno(exception), _FILE.search(exception.text)
    path = match[1] if match else ""
    if exception.type == "OSError" and errno in (28, 122):
        return create_problem("full_disk", exception.text)
    if exception.type in ("OperationalError", "Error") and exception.text == "database or disk is full":
        return create_problem("full_disk", exception.text)
    if exception.type == "PermissionError" and errno == 1:
        return create_problem("permission", exception.text)
    if exception.type == "PermissionError" and errno == 13 and not path:
        return create_problem("permission", exception.text) if "bind" in exception.line + exception.entry else None
    refused = (exception.type == "PermissionError" and errno == 13) or (exception.type == "OSError" and errno == 30)
    if not refused or exception.path.endswith("subprocess.py") or not path.startswith("/"):
        return None
    writable = ("/tmp/", "/var/tmp/", *((f"{root}/",) if root else ()))  # noqa: S108  (tests may write here)
    return None if path.startswith(writable) else create_problem("denied_path", exception.text)


def _check_program(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception = raised_case.exception
    name = ""
    if not exception.path.endswith("subprocess.py"):
        return None
    if (
        exception.type == "FileNotFoundError"
        and _parse_errno(exception) == 2
        and (match := _FILE.search(exception.text))
    ):
        name = "" if re.search(rf"\bcwd = '{re.escape(match[1])}'", exception.entry) else match[1]
    elif exception.type == "CalledProcessError" and (match := _STATUS_127.match(exception.text)):
        name = match[1]
    if not re.fullmatch(r"[\w.+-]+", name) or _is_near_name(name, distributions.PROGRAMS, 0.8):
        return None
    return create_problem("missing_binary", f"the program {name} is not installed", f"install {name} on this machine")


def _check_machine(raised_case: RaisedCase) -> EnvironmentProblem | None:
    """Check for problems with the display, the locale and time zones."""
    exception = raised_case.exception
    if exception.type in _DISPLAY_ERRORS or (exception.type == "TclError" and _NO_DISPLAY.search(exception.text)):
        return create_problem("missing_display", exception.text or "there is no display")
    if (
        exception.type == "Error"
        and exception.text == "unsupported locale setting"
        and exception.path.endswith("locale.py")
    ):
        match = re.search(r"\blocale = '([^']*)'", exception.entry)
        if match and not _LOCALE_NAME.fullmatch(match[1]):
            return None
        return create_problem("locale", f"the locale {match[1]} is not there" if match else exception.text)
    if exception.type == "ZoneInfoNotFoundError":
        match = re.search(r"No time zone found with key ([\w/+-]+)", exception.text)
        is_known_zone = match is not None and match[1] in distributions.ZONES
        description = f"there is no data of the time zone {match[1]}" if match and is_known_zone else ""
        return create_problem("missing_tz", description, distributions.install("tzdata")) if description else None
    return None


def _check_variable(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception = raised_case.exception
    at_environ = exception.path in ("<frozen os>", "os.py") or exception.path.endswith("/os.py")
    if exception.type != "KeyError" or not at_environ:
        return None
    name = exception.text.strip("'\"")
    text = raised_case.project.read_tests(raised_case.case)
    set_by_tests = {item for groups in _SETS_VARIABLE.findall(text) for item in groups if item}
    if "patch.dict(" in text and "environ" in text:
        set_by_tests |= set(re.findall(r"['\"]([A-Z][A-Z0-9_]+)['\"]", text)) | {name}
    usual_names = ("HOME", "PATH", "LANG", "TMPDIR", "SHELL", "USER")
    if name in set_by_tests or _is_near_name(name, (*set_by_tests, *usual_names), 0.85):
        return None
    remedy = f"give {name} a value in the command: --test-cmd 'env {name}=... pytest'"
    return create_problem("missing_env", f"the environment variable {name} is not set", remedy)


def _check_module(raised_case: RaisedCase) -> EnvironmentProblem | None:
    exception, project = raised_case.exception, raised_case.project
    if exception.type not in ("ModuleNotFoundError", "ImportError"):
        return None
    if match := _NO_LIBRARY.match(exception.text):
        return create_problem(
            "missing_module", f"the system library {match[1]} is not there", f"install what holds {match[1]}"
        )
    match = _NO_MODULE.match(exception.text)
    if match is None:
        return None
    top, _, part = match[1].partition(".")
    if top in project.modules:
        return None
    if top in distributions.SYSTEM_PARTS:
        remedy = f"install {distributions.SYSTEM_PARTS[top]} for the interpreter that runs the tests"
        return create_problem("missing_module", f"this Python was built without {top}", remedy)
    package = distributions.DISTRIBUTIONS.get(top, top.replace("_", "-"))
    if part:
        # The package exists but a part of it does not: a wrong import, unless the import is not the project's.
        apart = top in distributions.NAMESPACES
        if not apart and (top in sys.stdlib_module_names or "site-packages/" not in exception.path):
            return None
        package = match[1].replace(".", "-") if apart else package
    is_certain = top in distributions.DISTRIBUTIONS or top in distributions.WELL_KNOWN or project.is_declared(top)
    doubtful = _is_near_name(top, project.modules, 0.8) or _is_near_name(top, sys.stdlib_module_names, 0.85)
    computed = exception.path.startswith("<frozen importlib") or exception.path.endswith("importlib/__init__.py")
    if not is_certain and (doubtful or computed or top in sys.stdlib_module_names):
        return None
    return create_problem("missing_module", f"{match[1]} is not installed", distributions.install(package))


def _check_metadata(raised_case: RaisedCase) -> EnvironmentProblem | None:
    """Check for a package that is importable but not installed, so that its version is not known."""
    exception, project = raised_case.exception, raised_case.project
    match = _NO_METADATA.match(exception.text) if exception.type == "PackageNotFoundError" else None
    if match is None:
        return None
    name = match[1]
    if name.replace("-", "_") in project.modules:
        return create_problem(
            "missing_module", f"{name} itself is not installed", distributions.install("--editable .")
        )
    if not project.is_declared(name):
        return None
    return create_problem("missing_module", f"{name} is not installed", distributions.install(name))


_RULES = (
    _check_module,
    _check_metadata,
    _check_connection,
    _check_files,
    _check_program,
    _check_machine,
    _check_variable,
    _check_python_version,
)

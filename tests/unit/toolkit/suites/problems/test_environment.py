"""Environment problems and their look-alikes: all are real tests, run once and judged by the runner's report."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from redstart.core.run import Suite
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.problems.environment import classify
from redstart.toolkit.suites.problems.project import ProjectView, create_project_view

SHOP = {
    "shop/__init__.py": "",
    "shop/net.py": """
        import socket


        class Down(Exception):
            pass


        def closed_port():
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                return one.getsockname()[1]


        def call(port=None):
            return socket.create_connection(("127.0.0.1", port or closed_port()), timeout=5)


        def wrapped():
            try:
                return call()
            except OSError as error:
                raise Down("the stock server is down") from error


        def clumsy():
            try:
                return call()
            except OSError:
                return logg.warning("down")


        def pretends():
            raise ConnectionRefusedError(111, "Connection refused")


        def says_full():
            raise OSError(28, "No space left on device")


        def safe(fetch):
            return fetch()
        """,
    "shop/broken.py": "def total(:\n    return 1\n",
    "shop/late.py": "raise RuntimeError('shop requires Python >=3.99')\n",
    "site-packages/foreign.py": """
        def fail(name, *args, kind=Exception):
            raise (kind if kind is not Exception else type(name, (Exception,), {}))(*args)


        def getaddrinfo(host, port):
            import socket

            raise socket.gaierror(-2, "Name or service not known")
        """,
    "tools/gen.py": "",
    "pytest.ini": "[pytest]\npythonpath = . site-packages\naddopts = --strict-markers\n",
    "requirements.txt": "shopp-tools>=1\n",
}


def build_client_test(name: str, text: str) -> str:
    """Make a test in which a library raises this error."""
    return f"from foreign import fail\n\ndef test_it():\n    fail({name!r}, {text!r})\n"


def build_builtin_test(kind: str, *args: object) -> str:
    """Make a test in which a library gets this error from the system."""
    return f"from foreign import fail\n\ndef test_it():\n    fail('', *{args!r}, kind={kind})\n"


GROUNDS = {
    "module": ("missing_module", "import nowhere_to_be_found\n\ndef test_it(): pass\n"),
    "module_inside": ("missing_module", "def test_it():\n    import sklearn_of_mine.tree\n"),
    "metadata_of_the_project": (
        "missing_module",
        "import importlib.metadata\n\ndef test_it():\n    assert importlib.metadata.version('shop')\n",
    ),
    "metadata_declared": (
        "missing_module",
        "import importlib.metadata\n\ndef test_it():\n    assert importlib.metadata.version('shopp-tools')\n",
    ),
    "module_declared": ("missing_module", "import shopp_tools\n\ndef test_it(): pass\n"),
    "shared_library": (
        "missing_module",
        build_builtin_test("ImportError", "libGL.so.1: cannot open shared object file: No such file or directory"),
    ),
    "refused": ("refused_connection", "from shop.net import call\n\ndef test_it():\n    call()\n"),
    "refused_wrapped": ("refused_connection", "from shop.net import wrapped\n\ndef test_it():\n    wrapped()\n"),
    "refused_in_fixture": (
        "refused_connection",
        "import pytest\nfrom shop.net import call\n\n@pytest.fixture\ndef wire():\n    return call()\n\n"
        "def test_it(wire): pass\n",
    ),
    "psycopg": (
        "refused_connection",
        build_client_test(
            "OperationalError",
            'connection to server at "127.0.0.1", port 5432 failed: Connection refused\n\tIs the server running?',
        ),
    ),
    "redis": (
        "refused_connection",
        build_client_test("ConnectionError", "Error 111 connecting to localhost:6379. Connection refused."),
    ),
    "pymongo": (
        "refused_connection",
        build_client_test(
            "ServerSelectionTimeoutError", "localhost:27017: [Errno 111] Connection refused, Timeout: 30s"
        ),
    ),
    "requests": (
        "refused_connection",
        build_client_test(
            "ConnectionError",
            "HTTPConnectionPool(host='localhost', port=8080): Max retries exceeded with url: / (Caused by "
            "NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused'))",
        ),
    ),
    "pymysql": (
        "refused_connection",
        build_client_test("OperationalError", "(2003, \"Can't connect to MySQL server on 'localhost' ([Errno 111])\")"),
    ),
    "dns": ("dns", build_builtin_test("__import__('socket').gaierror", -3, "Temporary failure in name resolution")),
    "dns_of_requests": (
        "dns",
        build_client_test("ConnectionError", "NameResolutionError: Failed to resolve 'pypi.example'"),
    ),
    "no_route": ("network_unreachable", build_builtin_test("OSError", 101, "Network is unreachable")),
    "denied": ("denied_path", build_builtin_test("PermissionError", 13, "Permission denied", "/etc/shop.conf")),
    "read_only": ("denied_path", build_builtin_test("OSError", 30, "Read-only file system", "/opt/shop")),
    "eperm": ("permission", build_builtin_test("PermissionError", 1, "Operation not permitted")),
    "program": ("missing_binary", "import subprocess\n\ndef test_it():\n    subprocess.run(['ffmpeg-of-mine'])\n"),
    "program_in_shell": (
        "missing_binary",
        "import subprocess\n\ndef test_it():\n    subprocess.run('ffmpeg-of-mine -i a', shell=True, check=True)\n",
    ),
    "disk": ("full_disk", "def test_it():\n    with open('/dev/full', 'w') as file:\n        file.write('x')\n"),
    "sqlite_disk": ("full_disk", build_client_test("OperationalError", "database or disk is full")),
    "display": (
        "missing_display",
        build_client_test("TclError", "no display name and no $DISPLAY environment variable"),
    ),
    "locale": ("locale", "import locale\n\ndef test_it():\n    locale.setlocale(locale.LC_ALL, 'tlh_KX.UTF-8')\n"),
    "python": ("wrong_python", "def test_it():\n    import shop.late\n"),
    "variable": ("missing_env", "import os\n\ndef test_it():\n    assert os.environ['SHOP_TOKEN']\n"),
    "variable_wrapped": (
        "missing_env",
        "import os\n\ndef test_it():\n    try:\n        os.environ['SHOP_TOKEN']\n    except KeyError as error:\n"
        "        raise RuntimeError('set SHOP_TOKEN') from error\n",
    ),
    "zone": (
        "missing_tz",
        "import sys, zoneinfo\n\ndef test_it():\n    sys.modules['tzdata'] = None\n"
        "    zoneinfo.reset_tzpath(to=[])\n    zoneinfo.ZoneInfo('Pacific/Apia')\n",
    ),
    "fixture": ("missing_fixture_plugin", "def test_it(mocker): pass\n"),
    "fixture_of_django": ("missing_fixture_plugin", "# from django.urls import reverse\n\ndef test_it(client): pass\n"),
    "async": ("missing_fixture_plugin", "async def test_it(): pass\n"),
    "marker": ("missing_fixture_plugin", "import pytest\n\n@pytest.mark.django_db\ndef test_it(): pass\n"),
    "syntax_of_test": ("broken_test", "def test_it(:\n    pass\n"),
}

LOOK_ALIKES = {
    "quoted": "def test_it():\n    assert 'up' == '[Errno 111] Connection refused'\n",
    "said": "def test_it():\n    assert False, \"ModuleNotFoundError: No module named 'yaml'\"\n",
    "printed": "def test_it():\n    print('ConnectionRefusedError: [Errno 111] Connection refused')\n    assert 0\n",
    "failed": "import pytest\n\ndef test_it():\n    pytest.fail('OSError: [Errno 28] No space left on device')\n",
    "own_refusal": "from shop.net import pretends\n\ndef test_it():\n    pretends()\n",
    "own_full": "from shop.net import says_full\n\ndef test_it():\n    says_full()\n",
    "mocked": (
        "from unittest import mock\nfrom shop.net import safe\n\ndef test_it():\n"
        "    safe(mock.Mock(side_effect=ConnectionRefusedError(111, 'Connection refused')))\n"
    ),
    "faked": (
        "import socket\nfrom shop.net import safe\n\ndef fake():\n"
        "    raise socket.gaierror(-2, 'Name or service not known')\n\ndef test_it():\n    safe(fake)\n"
    ),
    "clumsy_handler": "from shop.net import clumsy\n\ndef test_it():\n    clumsy()\n",
    "own_server": (
        "import socketserver\nfrom shop.net import call\n\ndef test_it():\n"
        "    with socketserver.TCPServer(('127.0.0.1', 0), socketserver.BaseRequestHandler):\n        call()\n"
    ),
    "expected_other": (
        "import pytest\nfrom shop.net import wrapped\n\ndef test_it():\n    with pytest.raises(TimeoutError):\n"
        "        wrapped()\n"
    ),
    "metadata_misspelt": "import importlib.metadata\n\ndef test_it():\n    importlib.metadata.version('shpo')\n",
    "misspelt_own_module": "import shpo\n\ndef test_it(): pass\n",
    "own_module_off_the_path": "import gen\n\ndef test_it(): pass\n",
    "missing_own_submodule": "import shop.prices\n\ndef test_it(): pass\n",
    "missing_own_name": "from shop.net import fetch\n\ndef test_it(): pass\n",
    "misspelt_standard_module": "import colections\n\ndef test_it(): pass\n",
    "misspelt_standard_part": "import os.pathh\n\ndef test_it(): pass\n",
    "wrong_part_of_installed": "import pytest.nothing_here\n\ndef test_it(): pass\n",
    "computed_module": "import importlib\n\ndef test_it():\n    importlib.import_module('handler_of_42')\n",
    "key": "def test_it():\n    {}['SHOP_TOKEN']\n",
    "key_of_text": "import os\n\ndef test_it():\n    prices = dict(os.environ)\n    prices['SHOP_TOKEN']\n",
    "variable_set_by_test": (
        "import os\n\ndef test_it(monkeypatch):\n    monkeypatch.setenv('SHOP_TOKEN', 'x')\n"
        "    os.environ['SHOP_TOKNE']\n"
    ),
    "variable_removed_by_test": (
        "import os\n\ndef test_it(monkeypatch):\n    monkeypatch.delenv('SHOP_TOKEN', raising=False)\n"
        "    os.environ['SHOP_TOKEN']\n"
    ),
    "usual_variable_misspelt": "import os\n\ndef test_it():\n    os.environ['HOEM']\n",
    "missing_folder": "import subprocess\n\ndef test_it():\n    subprocess.run(['true'], cwd='build')\n",
    "program_misspelt": "import subprocess\n\ndef test_it():\n    subprocess.run(['pyhton', '-V'])\n",
    "whole_line_as_program": "import subprocess\n\ndef test_it():\n    subprocess.run('sort-of-mine -r a.txt')\n",
    "script_of_project": "import subprocess\n\ndef test_it():\n    subprocess.run(['./run-me'])\n",
    "program_fails": "import subprocess\n\ndef test_it():\n    subprocess.run('exit 3', shell=True, check=True)\n",
    "missing_file": "def test_it():\n    open('ffmpeg')\n",
    "which": "import shutil\n\ndef test_it():\n    assert shutil.which('ffmpeg-of-mine') is not None\n",
    "denied_in_temporary": build_builtin_test("PermissionError", 13, "Permission denied", "/tmp/pytest-0/a"),
    "denied_inside": build_builtin_test("PermissionError", 13, "Permission denied", "out/a.txt"),
    "zone_misspelt": "import zoneinfo\n\ndef test_it():\n    zoneinfo.ZoneInfo('Europe/Berln')\n",
    "locale_misspelt": "import locale\n\ndef test_it():\n    locale.setlocale(locale.LC_ALL, 'en_US.UFT-8')\n",
    "host_misspelt": "from foreign import getaddrinfo\n\ndef test_it():\n    getaddrinfo('localhsot', 80)\n",
    "syntax_of_source": "import shop.broken\n\ndef test_it(): pass\n",
    "syntax_of_text": "def test_it():\n    compile('def f(:', 'test_of_text.py', 'exec')\n",
    "memory": "def test_it():\n    raise MemoryError\n",
    "time": "def test_it():\n    raise TimeoutError('timed out')\n",
    "fixture_misspelt": "def test_it(tmp_pth): pass\n",
    "marker_misspelt": "import pytest\n\n@pytest.mark.parametrise('a', [1])\ndef test_it(a): pass\n",
    "fixture_of_project": "def test_it(client): pass\n",
    "version_as_data": build_client_test("InvalidRequirement", "requires Python >=3.8"),
    "widget": build_client_test("TclError", 'unknown option "-colour"'),
    "table": "import sqlite3\n\ndef test_it():\n    sqlite3.connect(':memory:').execute('select * from users')\n",
}


def build_project(files: dict[str, str], root: str = "") -> ProjectView:
    own_files = {path: text for path, text in files.items() if not path.startswith("site-packages/")}
    return create_project_view(own_files, lambda path: textwrap.dedent(own_files[path]).encode(), root)


@pytest.fixture(scope="module")
def ran(tmp_path_factory, execute, environment, write):
    """Run every test above once. Return the cases by the name of their test, and the project."""
    tests = {name: text for name, (_, text) in GROUNDS.items()} | LOOK_ALIKES
    files = SHOP | {f"test_{name}.py": text for name, text in tests.items()}
    root = write(tmp_path_factory.mktemp("ground") / "repo", files)
    suite = Suite(runner="pytest")
    parsed = runner.read(suite, execute(root, runner.request(suite, environment)))
    cases = {case.id.partition(".py")[0].removeprefix("test_"): case for case in parsed.cases}
    return cases, build_project(files, str(root))


@pytest.mark.slow
def test_every_sample_test_fails(ran):
    cases, _ = ran
    assert {name for name in GROUNDS | LOOK_ALIKES if not cases[name].is_red} == set()
    assert len(LOOK_ALIKES) >= 25


@pytest.mark.parametrize("name", GROUNDS)
def test_environment_problem_is_identified(name, ran):
    cases, project_view = ran
    problem = classify(cases[name], project_view)
    assert problem is not None, cases[name]
    assert problem.kind == GROUNDS[name][0], problem
    assert problem.what
    assert problem.remedy


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_similar_looking_bug_stays_a_target(name, ran):
    cases, project_view = ran
    assert classify(cases[name], project_view) is None, cases[name].detail


@pytest.mark.parametrize(
    ("name", "subject", "remedy"),
    [
        ("psycopg", "nothing answers at 127.0.0.1:5432", "docker run -d -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD="),
        ("psycopg", "nothing answers at 127.0.0.1:5432", "SERVICES='[\"127.0.0.1:5432\"]' redstart fix"),
        ("redis", "nothing answers at localhost:6379", "start Redis, for example: docker run"),
        ("requests", "nothing answers at localhost:8080", "start the server that the tests expect at localhost:8080"),
        ("program", "ffmpeg-of-mine", "install ffmpeg-of-mine"),
        ("program_in_shell", "ffmpeg-of-mine", "install ffmpeg-of-mine"),
        ("fixture", "mocker", "pip install pytest-mock"),
        ("variable", "SHOP_TOKEN", "env SHOP_TOKEN="),
        ("syntax_of_test", "test_syntax_of_test.py, line 1", "correct the test file"),
        ("module_declared", "shopp_tools", "pip install shopp-tools"),
    ],
)
def test_what_is_said_is_concrete(name, subject, remedy, ran):
    cases, project_view = ran
    problem = classify(cases[name], project_view)
    assert problem is not None
    assert subject in problem.what
    assert remedy in problem.remedy


UNITTEST = {
    "shop.py": """
        import os
        import socket


        def token():
            return os.environ["SHOP_TOKEN"]


        def call():
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        """,
    "test_shop.py": """
        import unittest

        import shop


        class TestShop(unittest.TestCase):
            def test_token(self):
                self.assertTrue(shop.token())

            def test_call(self):
                shop.call()

            def test_price(self):
                self.assertEqual("up", "[Errno 111] Connection refused")

            def test_key(self):
                {}["SHOP_TOKEN"]
        """,
    "test_table.py": "import unittest\n\nimport yaml_of_mine\n\n\nclass TestTable(unittest.TestCase):\n    pass\n",
    "test_shape.py": "import unittest\n\n\nclass TestShape(unittest.TestCase:\n    pass\n",
}


@pytest.mark.slow
def test_unittest_tracebacks_are_read(tmp_path: Path, execute, environment, write):
    root = write(tmp_path / "repo", UNITTEST)
    suite = Suite(runner="unittest")
    parsed = runner.read(suite, execute(root, runner.request(suite, environment)))
    project_view = build_project(UNITTEST, str(root))
    problems = {case.id: classify(case, project_view) for case in parsed.cases}
    assert {id_: problem.kind if problem else "" for id_, problem in problems.items()} == {
        "test_shop.TestShop.test_token": "missing_env",
        "test_shop.TestShop.test_call": "refused_connection",
        "test_shop.TestShop.test_price": "",
        "test_shop.TestShop.test_key": "",
        "test_table": "missing_module",
        "test_shape": "broken_test",
    }


def test_modules_the_project_could_define_are_its_own():
    project_view = create_project_view(
        ["src/shop/__init__.py", "src/shop/till.py", "tools/gen.py", "tests/helpers/a.py"], lambda _: None
    )
    assert {"shop", "gen", "tools", "tests", "helpers"} <= project_view.modules
    assert project_view.modules.isdisjoint({"till", "src"})

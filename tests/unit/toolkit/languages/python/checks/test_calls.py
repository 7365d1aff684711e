"""Dangerous calls, and calls that only look dangerous."""

from __future__ import annotations

import pytest

from redstart.core.finding import Risk, Severity
from redstart.toolkit.languages.python.checks.calls import find_blocked_calls, find_dangerous_calls
from redstart.toolkit.languages.python.checks.source import PythonSource

HEAD = """import hashlib, jinja2, jwt, os, pickle, random, requests, secrets, ssl, stat, tarfile, tempfile
import yaml, zipfile
import numpy as np
import defusedxml.ElementTree as safe
import xml.etree.ElementTree as ET
from flask import Flask
from subprocess import run
app = Flask(__name__)
class Careful(yaml.SafeLoader):
    pass
"""


def list_rules(body: str, path: str = "a.py") -> list[str]:
    text = (
        HEAD + "def f(data, path, user, password, options):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    )
    return [call.rule for call in find_dangerous_calls([PythonSource(path, text.encode())])]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("pickle.loads(data)", "unsafe-deserialisation"),
        ("np.load(path, allow_pickle=True)", "unsafe-deserialisation"),
        ("yaml.load(data)", "unsafe-yaml"),
        ("yaml.load(data, Loader=yaml.UnsafeLoader)", "unsafe-yaml"),
        ("tempfile.mktemp()", "unsafe-temporary-file"),
        ("hashlib.md5(password.encode())", "weak-hash"),
        ("hashlib.new('md5', password.encode())", "weak-hash"),
        ("requests.get(path, verify=False)", "unverified-connection"),
        ("requests.get(path, **{'verify': False})", "unverified-connection"),
        ("ssl._create_unverified_context()", "unverified-connection"),
        ("context = ssl.create_default_context()\ncontext.check_hostname = False", "unverified-connection"),
        ("jwt.decode(data, options={'verify_signature': False})", "unverified-connection"),
        ("ET.parse(path)", "unsafe-xml"),
        ("token = random.choice('abc')", "foreseeable-random"),
        ("app.run(debug=True)", "debug-server"),
        ("os.chmod(path, 0o777)", "open-permissions"),
        ("os.chmod(path, stat.S_IRWXU | stat.S_IWOTH)", "open-permissions"),
        ("with tarfile.open(path) as archive:\n    archive.extractall()", "unsafe-archive"),
        ("tarfile.open(path).extractall(filter='fully_trusted')", "unsafe-archive"),
        ("jinja2.Environment()", "unsafe-template"),
        ("jinja2.Template(data).render()", "unsafe-template"),
        ("assert user.is_admin", "assert-guards"),
    ],
)
def test_each_dangerous_call_is_found(body: str, rule: str) -> None:
    assert list_rules(body) == [rule]


@pytest.mark.parametrize(
    "body",
    [
        "pickle.loads(pickle.dumps(data))",
        "pickle.dumps(data)",
        "np.load(path)",
        "yaml.safe_load(data)",
        "yaml.load(data, Loader=yaml.SafeLoader)",
        "yaml.load(data, Loader=Careful)",
        "tempfile.mkstemp()",
        "hashlib.md5(data, usedforsecurity=False)",
        "hashlib.md5(data)",
        "hashlib.sha256(password.encode())",
        "requests.get(path, verify=True)",
        "safe.parse(path)",
        "ET.fromstring('<a/>')",
        "colour = random.choice('abc')",
        "token = secrets.choice('abc')",
        "app.run()",
        "os.chmod(path, 0o755)",
        "with tarfile.open(path) as archive:\n    archive.extractall(filter='data')",
        "with zipfile.ZipFile(path) as archive:\n    archive.extractall()",
        "jinja2.Environment(autoescape=True)",
        "jinja2.Template('hello')",
        "assert data",
    ],
)
def test_harmless_lookalike_is_not_found(body: str) -> None:
    assert list_rules(body) == []


def test_test_may_assert_permissions() -> None:
    assert list_rules("assert user.is_admin", "tests/test_users.py") == []


def test_dangerous_call_blocks_unless_its_risk_is_low() -> None:
    (finding,) = find_dangerous_calls([PythonSource("a.py", b"import pickle\npickle.loads(x)\n")])
    assert (finding.risk, finding.severity) == (Risk.high, Severity.error)


def test_blocked_calls_are_recognized_by_their_full_names() -> None:
    text = (
        b"from os import system as go\nimport os\ngo('ls')\nos.system('ls')\nmine.system('ls')\nrun = eval\nrun('1')\n"
    )
    calls = find_blocked_calls(PythonSource("a.py", text), ("os.system", "eval"))
    assert [(item.line, item.rule) for item in calls] == [(3, "os.system"), (4, "os.system"), (7, "eval")]

"""Package requests read from a project's files, and how they are judged by their names alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redstart.toolkit.installs.allowed import is_name
from redstart.toolkit.installs.asked import is_manifest, read
from redstart.toolkit.installs.environment import requests_of
from redstart.toolkit.installs.judge import judge, suspicion
from redstart.toolkit.installs.names import imitated, popular, within_one

PYTHON, NODE = "python", "node"
ALLOWED = {"python": ("click", "httpx", "pydantic", "pytest", "requests"), "node": ("express", "jest", "vitest")}


def project(*lines: str, **tables: object) -> dict[str, bytes]:
    text = "[project]\nname = 'mine'\ndependencies = " + json.dumps(lines)
    return {"pyproject.toml": text.encode(), "src/mine/__init__.py": b""}


def package(**dependencies: object) -> dict[str, bytes]:
    return {"package.json": json.dumps({"name": "mine", "dependencies": dependencies}).encode()}


@pytest.mark.parametrize(
    "line",
    [
        "requests",
        "Requests>=2",
        "requests[socks, security] >=2,<3 ; python_version >= '3.8'",
        "requests (>=2)",
        "requests == 2.*",
        "requests~=2.0;sys_platform=='linux'",
        "requests; (python_version<'3.9' or os_name == \"nt\") and 'x' not in platform_version",
    ],
)
def test_a_requirement_is_read(line: str) -> None:
    (found,) = judge(project(line), ALLOWED, {}).allowed
    assert found.name == "requests"


@pytest.mark.parametrize(
    "line",
    [
        "requests @ https://example.invalid/requests.whl",
        "requests@git+https://example.invalid/requests",
        "git+https://example.invalid/requests",
        "./requests",
        "../requests",
        "file:///requests",
    ],
)
def test_an_address_is_refused_even_of_an_allowed_package(line: str) -> None:
    said = judge(project(line), ALLOWED, {PYTHON: ["requests"]})
    assert not said.allowed
    assert [item.reason for item in said.refused if "not from the index" in item.reason]


@pytest.mark.parametrize(
    "line", ["requests --index-url=x", "requests; import os", "a b", "requests>=2 --pre", "%", "a" * 2000]
)
def test_what_cannot_be_read_is_refused(line: str) -> None:
    said = judge(project(line), ALLOWED, {})
    assert not said.allowed
    assert said.refused


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("reqeusts", "requests"),
        ("request5", "requests"),
        ("requestss", "requests"),
        ("numppy", "numpy"),
        ("py-test", "pytest"),
        ("panda", "pandas"),
        ("fIask", "flask"),
        ("pydant1c", "pydantic"),
    ],
)
def test_a_name_that_looks_like_another_is_refused(name: str, like: str) -> None:
    (refusal,) = judge(project(name), ALLOWED, {}).refused
    assert f"mistaken for {like}" in refusal.reason


def test_letters_of_another_alphabet_are_named() -> None:
    files = {"requirements.txt": "r\u0435quests\n".encode(), **package(**{"expr\u0435ss": "1"})}
    reasons = [item.reason for item in judge(files, ALLOWED, {}).refused]
    assert any("mistaken for requests" in item for item in reasons)
    assert any("mistaken for express" in item for item in reasons)
    assert all(item.isascii() for item in reasons)


def test_the_users_own_list_outranks_the_look_of_a_name() -> None:
    assert judge(project("reqeusts"), {PYTHON: ["reqeusts"]}, {}).allowed
    assert judge(project("reqeusts"), {}, {PYTHON: ["Reqeusts"]}).allowed
    assert not judge(project("reqeusts"), {NODE: ["reqeusts"]}, {}).allowed


def test_what_is_on_no_list_is_asked_for() -> None:
    said = judge({**project("uvicorn"), **package(acme="^1")}, ALLOWED, {})
    assert said.question == "the program needs packages that are not on your allow list: acme, uvicorn"
    assert not said.allowed
    assert judge(project("click"), ALLOWED, {}).question == ""


def test_names_that_stand_in_another_place_are_refused() -> None:
    said = judge({**project("plistlib", "mine-lib"), **package(trace_events="*")}, {}, {})
    reasons = {item.name: item.reason for item in said.refused}
    assert "part of Python" in reasons["plistlib"]
    assert "part of Node.js" in reasons["trace_events"]
    assert "own name" in suspicion("my-tool", PYTHON, {"my-tool"})


def test_every_place_of_a_pyproject_is_read() -> None:
    text = """
    [build-system]
    requires = ["hatchling>=1", "acme-build"]
    [project]
    name = "mine"
    dependencies = ["acme-a"]
    [project.optional-dependencies]
    all = ["mine[test]"]
    test = ["acme-b"]
    [dependency-groups]
    dev = ["acme-c", {include-group = "x"}]
    [tool.poetry.dependencies]
    python = "^3.11"
    acme-d = "^1.2"
    acme-e = {git = "https://example.invalid"}
    [tool.poetry.group.dev.dependencies]
    acme-f = {version = "1.0"}
    [tool.uv.sources]
    acme-g = {path = "../g"}
    [[tool.uv.index]]
    url = "https://example.invalid"
    """
    asked = read({"pyproject.toml": text.encode()})
    assert {requirement.name: requirement.installed for requirement in asked.requirements} == {
        "hatchling": False,
        "acme-build": False,
        **dict.fromkeys(["acme-a", "acme-b", "acme-c", "acme-d", "acme-f"], True),
    }
    assert {item.name for item in asked.refused} == {"acme-e", "acme-g", ""}


def test_requirements_with_options() -> None:
    text = "-r requirements-dev.txt\n-c bounds.txt\n-e .\nflask==3 \\\n  --hash=sha256:aa # why\n\n# none\n"
    assert [requirement.text for requirement in read({"requirements.txt": text.encode()}).requirements] == ["flask==3"]
    for option in (
        "--extra-index-url https://x",
        "-ihttps://x",
        "-f x",
        "-e git+https://x",
        "-r ../up.txt",
        "-r o.txt",
    ):
        asked = read({"requirements.txt": option.encode()})
        assert asked.refused, option


@pytest.mark.parametrize(
    "wanted",
    ["npm:other@1", "git+https://x/y", "github:x/y", "x/y", "https://x/y.tgz", "file:../x", "link:x", "./x", 1],
)
def test_what_does_not_come_from_the_registry_is_refused(wanted: object) -> None:
    said = judge(package(express=wanted), ALLOWED, {})
    assert not said.allowed
    assert said.refused


@pytest.mark.parametrize("wanted", ["^4.1.0", "*", "", ">=1 <2 || 3.x", "latest", "~1.2", "1.0.0-beta.1", "1 - 2"])
def test_a_range_of_versions_is_read(wanted: str) -> None:
    assert judge(package(express=wanted), ALLOWED, {}).allowed


def test_overrides_and_locks_cannot_replace_a_package() -> None:
    files = {"package.json": json.dumps({"overrides": {"a": {".": "npm:evil@1"}}, "resolutions": {"b": "1"}}).encode()}
    assert [item.name for item in judge(files, ALLOWED, {}).refused] == ["a"]
    entries = {
        "": {},
        "node_modules/express": {"resolved": "https://mirror.invalid/npm/express/-/express-4.0.0.tgz"},
        "node_modules/@a/b": {"resolved": "https://mirror.invalid/@a/b/-/b-4.0.0.tgz"},
        "node_modules/evil": {"resolved": "https://mirror.invalid/other/-/other-4.0.0.tgz"},
        "node_modules/x/node_modules/lodash": {"name": "other"},
    }
    lock = {"package-lock.json": json.dumps({"packages": entries}).encode()}
    assert [item.name for item in judge(lock, ALLOWED, {}).refused] == ["evil", "lodash"]


@pytest.mark.parametrize("data", [b"\xff", b"{", b"[]", b'"x"', b"[" * 100_000, b"{}" + b" " * 3_000_000])
def test_a_file_that_cannot_be_read_is_a_refusal(data: bytes) -> None:
    (refusal,) = read({"package.json": data}).refused
    assert refusal.reason.startswith("package.json cannot be read")


def test_which_files_are_manifests() -> None:
    yes = ("pyproject.toml", "a/package.json", "requirements.txt", "requirements-dev.txt", "requirements/dev.txt")
    no = ("node_modules/a/package.json", ".venv/pyproject.toml", "setup.py", "requirements.md", "notes.txt")
    assert [path for path in (*yes, *no) if is_manifest(path)] == list(yes)


def test_one_request_a_language_with_what_is_installed() -> None:
    files = {**project("click"), **package(express="^4")}
    files["pyproject.toml"] += b"\n[build-system]\nrequires = ['hatchling']\n"
    python, node = requests_of(judge(files, ALLOWED, {}), "/usr/bin/python3")
    assert (python.language, python.trusted, python.python) == (PYTHON, ("click",), "/usr/bin/python3")
    assert (node.language, node.trusted, node.requirements[0].kind) == (NODE, ("express",), "dependencies")
    assert python.own == ("mine",)


@given(st.sampled_from(sorted(popular(PYTHON))), st.data())
def test_one_edit_is_one_edit(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcxyz"))
    swapped = name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :]
    for edited in (name[:at] + name[at + 1 :], name[:at] + letter + name[at:], name[:at] + letter + name[at + 1 :]):
        assert within_one(edited, name)
    assert within_one(swapped, name)
    assert not within_one(name + "xy", name)


def test_no_name_is_suspicious_that_is_popular_itself() -> None:
    assert {item for language in (PYTHON, NODE) for item in ALLOWED[language] if imitated(item, language)} == set()
    assert set(ALLOWED["python"]) <= popular(PYTHON)
    assert all(is_name(item) for language in (PYTHON, NODE) for item in popular(language))
    assert not is_name("a b")
    assert imitated("six2", PYTHON) == ""

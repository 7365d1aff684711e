"""Package requests read from a project's files, and how they are judged by their names alone."""

from __future__ import annotations

import json

import pytest

from redstart.toolkit.installs.approval import explain_suspicion, judge
from redstart.toolkit.installs.default_packages import is_name
from redstart.toolkit.installs.environment import build_install_requests
from redstart.toolkit.installs.names import find_imitated, get_popular_names
from redstart.toolkit.installs.requested_packages import is_manifest, read

PYTHON, NODE = "python", "node"
ALLOWED = {"python": ("click", "httpx", "pydantic", "pytest", "requests"), "node": ("express", "jest", "vitest")}


def build_project(*lines: str, **tables: object) -> dict[str, bytes]:
    text = "[project]\nname = 'mine'\ndependencies = " + json.dumps(lines)
    return {"pyproject.toml": text.encode(), "src/mine/__init__.py": b""}


def build_package(**dependencies: object) -> dict[str, bytes]:
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
def test_requirement_is_parsed(line: str) -> None:
    (requirement,) = judge(build_project(line), ALLOWED, {}).allowed
    assert requirement.name == "requests"


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
def test_address_is_refused_even_for_an_allowed_package(line: str) -> None:
    judgement = judge(build_project(line), ALLOWED, {PYTHON: ["requests"]})
    assert not judgement.allowed
    assert [item.reason for item in judgement.refused if "not from the index" in item.reason]


@pytest.mark.parametrize(
    "line", ["requests --index-url=x", "requests; import os", "a b", "requests>=2 --pre", "%", "a" * 2000]
)
def test_unreadable_requirement_is_refused(line: str) -> None:
    judgement = judge(build_project(line), ALLOWED, {})
    assert not judgement.allowed
    assert judgement.refused


@pytest.mark.parametrize(
    ("name", "similar_name"),
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
def test_name_similar_to_a_popular_package_is_refused(name: str, similar_name: str) -> None:
    (refusal,) = judge(build_project(name), ALLOWED, {}).refused
    assert f"mistaken for {similar_name}" in refusal.reason


def test_letters_of_another_alphabet_are_reported() -> None:
    files = {"requirements.txt": "r\u0435quests\n".encode(), **build_package(**{"expr\u0435ss": "1"})}
    reasons = [item.reason for item in judge(files, ALLOWED, {}).refused]
    assert any("mistaken for requests" in item for item in reasons)
    assert any("mistaken for express" in item for item in reasons)
    assert all(item.isascii() for item in reasons)


def test_user_allow_list_overrides_name_similarity() -> None:
    assert judge(build_project("reqeusts"), {PYTHON: ["reqeusts"]}, {}).allowed
    assert judge(build_project("reqeusts"), {}, {PYTHON: ["Reqeusts"]}).allowed
    assert not judge(build_project("reqeusts"), {NODE: ["reqeusts"]}, {}).allowed


def test_package_outside_the_allow_list_needs_approval() -> None:
    judgement = judge({**build_project("uvicorn"), **build_package(acme="^1")}, ALLOWED, {})
    assert judgement.question == "the program needs packages that are not on your allow list: acme, uvicorn"
    assert not judgement.allowed
    assert judge(build_project("click"), ALLOWED, {}).question == ""


def test_name_of_a_built_in_module_or_the_project_is_refused() -> None:
    judgement = judge({**build_project("plistlib", "mine-lib"), **build_package(trace_events="*")}, {}, {})
    reasons = {item.name: item.reason for item in judgement.refused}
    assert "part of Python" in reasons["plistlib"]
    assert "part of Node.js" in reasons["trace_events"]
    assert "own name" in explain_suspicion("my-tool", PYTHON, {"my-tool"})


def test_every_dependency_section_of_a_pyproject_is_read() -> None:
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
    parsed_manifest = read({"pyproject.toml": text.encode()})
    assert {requirement.name: requirement.installed for requirement in parsed_manifest.requirements} == {
        "hatchling": False,
        "acme-build": False,
        **dict.fromkeys(["acme-a", "acme-b", "acme-c", "acme-d", "acme-f"], True),
    }
    assert {item.name for item in parsed_manifest.refused} == {"acme-e", "acme-g", ""}


def test_requirement_options_are_read_or_refused() -> None:
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
        parsed_manifest = read({"requirements.txt": option.encode()})
        assert parsed_manifest.refused, option


@pytest.mark.parametrize(
    "version",
    ["npm:other@1", "git+https://x/y", "github:x/y", "x/y", "https://x/y.tgz", "file:../x", "link:x", "./x", 1],
)
def test_package_from_outside_the_registry_is_refused(version: object) -> None:
    judgement = judge(build_package(express=version), ALLOWED, {})
    assert not judgement.allowed
    assert judgement.refused


@pytest.mark.parametrize("version", ["^4.1.0", "*", "", ">=1 <2 || 3.x", "latest", "~1.2", "1.0.0-beta.1", "1 - 2"])
def test_version_range_is_allowed(version: str) -> None:
    assert judge(build_package(express=version), ALLOWED, {}).allowed


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
def test_unreadable_manifest_is_refused(data: bytes) -> None:
    (refusal,) = read({"package.json": data}).refused
    assert refusal.reason.startswith("package.json cannot be read")


def test_manifests_are_recognized_by_path() -> None:
    manifests = ("pyproject.toml", "a/package.json", "requirements.txt", "requirements-dev.txt", "requirements/dev.txt")
    other_files = ("node_modules/a/package.json", ".venv/pyproject.toml", "setup.py", "requirements.md", "notes.txt")
    assert [path for path in (*manifests, *other_files) if is_manifest(path)] == list(manifests)


def test_each_language_gets_one_request_with_its_packages() -> None:
    files = {**build_project("click"), **build_package(express="^4")}
    files["pyproject.toml"] += b"\n[build-system]\nrequires = ['hatchling']\n"
    python, node = build_install_requests(judge(files, ALLOWED, {}), "/usr/bin/python3")
    assert (python.language, python.trusted, python.python) == (PYTHON, ("click",), "/usr/bin/python3")
    assert (node.language, node.trusted, node.requirements[0].kind) == (NODE, ("express",), "dependencies")
    assert python.own == ("mine",)


def test_popular_names_are_not_suspicious() -> None:
    assert {item for language in (PYTHON, NODE) for item in ALLOWED[language] if find_imitated(item, language)} == set()
    assert set(ALLOWED["python"]) <= get_popular_names(PYTHON)
    assert all(is_name(item) for language in (PYTHON, NODE) for item in get_popular_names(language))
    assert not is_name("a b")
    assert find_imitated("six2", PYTHON) == ""

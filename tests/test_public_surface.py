"""Nothing is public by accident: this file lists every name, argument and option of the Python API."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import redstart
from redstart.core import errors

NAMES = [
    *("fix", "afix", "start_fix", "create", "acreate", "start_create", "improve", "aimprove", "start_improve"),
    *("audit", "aaudit", "start_audit", "resume", "aresume", "start_resume"),
    *("verify", "averify", "triage", "atriage", "Verification", "Triage", "VerifyOptions", "TriageOptions"),
    *("Run", "RunResult", "AuditResult", "RunState", "RunSpec", "Proof", "Verdict", "Finding", "Event", "Limits"),
    *("Model", "Ask", "Answer", "Usage", "Sandbox", "Workspaces", "Execution", "Completed"),
    *("FixOptions", "CreateOptions", "ImproveOptions", "AuditOptions", "ResumeOptions"),
    *("RedstartError", "ConfigError", "PolicyViolation", "ReplayDiverged", "PortError", "BudgetExceeded"),
    *("ModelError", "ModelBusy", "ModelGarbled", "ModelRefused", "ModelTimeout", "ModelUnreachable"),
    *("SandboxUnavailable", "SandboxDied", "StoreError", "BlobMissing", "Fenced", "NewerFormat"),
    "InternalError",
    "__version__",
]
SIGNATURES = {
    "fix": ("(path: 'PathLike' = '.', **options: 'Unpack[FixOptions]')", "RunResult"),
    "create": ("(goal: 'str', out: 'PathLike', **options: 'Unpack[CreateOptions]')", "RunResult"),
    "improve": ("(path: 'PathLike' = '.', *, cycles: 'int', **options: 'Unpack[ImproveOptions]')", "RunResult"),
    "audit": ("(path: 'PathLike' = '.', **options: 'Unpack[AuditOptions]')", "AuditResult"),
    "resume": ("(run_id: 'str', **options: 'Unpack[ResumeOptions]')", "RunResult"),
    "verify": ("(path: 'PathLike' = '.', **options: 'Unpack[VerifyOptions]')", "Verification"),
    "triage": ("(path: 'PathLike' = '.', **options: 'Unpack[TriageOptions]')", "Triage"),
}
WITHOUT_RUN = ("verify", "triage")
"""Functions that store no run, and so have no form that returns one."""
OPTIONS = {
    "FixOptions": [
        *(
            "all_red",
            "candidates",
            "choose",
            "escalate",
            "fresh",
            "hint",
            "issue",
            "limits",
            "model",
            "on_event",
            "patch",
            "reflect",
            "sandbox",
            "session",
            "targets",
            "test_command",
        ),
        "verify",
    ],
    "CreateOptions": ["limits", "model", "on_event", "reflect", "sandbox", "session"],
    "ImproveOptions": ["goal", "limits", "model", "on_event", "patch", "reflect", "sandbox"],
    "AuditOptions": ["goal", "model", "on_event", "review", "sandbox", "since"],
    "ResumeOptions": ["model", "on_event", "patch", "sandbox"],
    "VerifyOptions": [
        *("accept", "base", "base_junit", "head", "junit", "level", "max_minutes", "mutants", "patch", "python"),
        *("require", "sandbox", "staged", "test_command", "test_files"),
    ],
    "TriageOptions": ["base", "bisect", "head", "junit", "log", "python", "sandbox", "test_command"],
}
MEMBERS = {
    "Run": ["events", "id", "result", "stop"],
    "RunResult": ["diff", "ok", "proof", "verdict"],
    "AuditResult": ["ok", "run_id", "unreviewed", "warnings"],
}


def test_public_names_are_as_listed():
    assert sorted(redstart.__all__) == sorted(NAMES)
    assert redstart.__all__ == sorted(redstart.__all__)


def test_type_checker_and_runtime_see_the_same_names():
    tree = ast.parse(Path(redstart.__file__).read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}
    assert sorted([*homes, "__version__"]) == sorted(NAMES)
    for name, home in homes.items():
        assert getattr(redstart, name) is getattr(importlib.import_module(home), name), name


@pytest.mark.parametrize("name", SIGNATURES)
def test_function_and_its_variants_have_the_listed_signatures(name):
    arguments, result = SIGNATURES[name]
    assert str(inspect.signature(getattr(redstart, name))) == f"{arguments} -> '{result}'"
    assert str(inspect.signature(getattr(redstart, f"a{name}"))) == f"{arguments} -> '{result}'"
    if name not in WITHOUT_RUN:
        assert str(inspect.signature(getattr(redstart, f"start_{name}"))) == f"{arguments} -> 'Run[{result}]'"
    assert inspect.iscoroutinefunction(getattr(redstart, f"a{name}"))


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_as_listed(name):
    assert sorted(getattr(redstart, name).__annotations__) == OPTIONS[name]
    assert getattr(redstart, name).__required_keys__ == frozenset()


@pytest.mark.parametrize("name", MEMBERS)
def test_returned_types_have_the_listed_members(name):
    kind = getattr(redstart, name)
    instance = {"id"} if name == "Run" else set()
    members = {*vars(kind), *inspect.get_annotations(kind), *instance} - {"from_state", "model_config", "model_fields"}
    assert sorted(member for member in members if not member.startswith("_")) == MEMBERS[name]


def test_every_user_facing_error_is_public():
    error_names = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert error_names - {"Needs"} <= set(NAMES)


def test_every_function_documents_its_options():
    for name in SIGNATURES:
        text = inspect.getdoc(getattr(redstart, name)) or ""
        options = redstart.__dict__[f"{name.capitalize()}Options"].__annotations__
        assert [option for option in options if f"**{option}**" not in text] == [], name
        for form in (f"a{name}", *(() if name in WITHOUT_RUN else (f"start_{name}",))):
            assert f"See `redstart.{name}`" in (inspect.getdoc(getattr(redstart, form)) or "")

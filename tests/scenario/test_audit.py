"""Whole audits from the command line."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.user import Ran, User

DANGER = "import pickle\n\n\ndef load(data):\n    return pickle.loads(data)\n"
QUERY = 'def find(cur, name):\n    return cur.execute("SELECT * FROM people WHERE name = \'" + name + "\'")\n'
MODEL = """
import json, sys
ask = json.load(sys.stdin)
text = "\\n".join(message["text"] for message in ask["messages"])
if ask["question"] == "plan":
    said = {"summary": "the SQL of find.py", "reviews": ["sql"], "files": ["shop/find.py"]}
else:
    good = {"path": "shop/find.py", "line": 1, "quote": "def find(cur, name):", "kind": "sql_misspelt",
            "risk": "low", "message": "a claim that holds"}
    said = {"findings": [good, {**good, "line": 400}, {**good, "quote": "no such line"}, {**good, "path": "no.py"}]}
    open(sys.argv[1], "w").write(text)
print(json.dumps({"text": json.dumps(said), "usage": {"input_tokens": 1, "output_tokens": 1, "usd": 0.0}}))
"""


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Return a user without a project environment: an audit runs no project code."""
    return User(tmp_path, tmp_path / "no-environment")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "shop").mkdir(parents=True)
    (place / "shop" / "store.py").write_text(DANGER)
    (place / "shop" / "find.py").write_text(QUERY)
    return place


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def parse_findings(ran: Ran) -> list[tuple[str, int, str]]:
    assert ran.code in (0, 1), ran.err
    return [(load["path"], load["line"], load["kind"]) for load in json.loads(ran.out)["findings"]]


BOTH = [("shop/find.py", 2, "sql_injection"), ("shop/store.py", 5, "dangerous_call")]


def test_tools_alone_audit_a_directory_without_git(user: User, folder: Path) -> None:
    result = user.redstart("audit", folder, "--no-llm")
    assert result.code == 0, result.err
    assert "shop/find.py:2  high  SQL is put together from values" in result.out
    assert "2 findings" in result.out
    assert parse_findings(user.redstart("audit", folder / "shop" / "store.py", "--no-llm", "--format", "json")) == [
        ("store.py", 5, "dangerous_call")
    ]
    assert sorted(path.name for path in folder.rglob("*")) == ["find.py", "shop", "store.py"]


def test_unaccepted_finding_exits_with_1(user: User, folder: Path) -> None:
    assert user.redstart("audit", folder, "--no-llm", "--fail-on", "high").code == 1
    accepted_path = folder.parent / "accepted.json"
    assert user.redstart("audit", folder, "--no-llm", "--baseline", accepted_path, "--write-baseline").code == 0
    # One finding moves and one is added.
    (folder / "shop" / "store.py").write_text("# a line more\n" + DANGER)
    accepted = ("audit", folder, "--no-llm", "--fail-on", "high", "--baseline", accepted_path)
    assert user.redstart(*accepted).code == 0
    (folder / "shop" / "more.py").write_text(DANGER)
    second_result = user.redstart(*accepted, "--format", "json")
    assert (second_result.code, parse_findings(second_result)) == (1, [("shop/more.py", 5, "dangerous_call")])


def test_since_reports_only_findings_changed_since_a_commit(user: User, folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "shop" / "store.py").write_text(DANGER + "\n\ndef again(data):\n    return pickle.loads(data[1:])\n")
    (folder / "shop" / "new file.py").write_text(QUERY)
    result = user.redstart("audit", folder / "shop", "--no-llm", "--since", "main", "--format", "json")
    assert sorted(parse_findings(result)) == [
        ("shop/new file.py", 2, "sql_injection"),
        ("shop/store.py", 9, "dangerous_call"),
    ]
    assert user.redstart("audit", folder, "--no-llm", "--since", "nowhere").code == 2
    assert user.redstart("audit", folder, "--no-llm", "--since", "--output=x").code == 2


def test_machine_readable_formats_list_the_findings(user: User, folder: Path) -> None:
    log: dict[str, Any] = json.loads(user.redstart("audit", folder, "--no-llm", "--format", "sarif").out)
    assert [entry["ruleId"] for entry in log["runs"][0]["results"]] == [
        "rules/sql-built-from-strings",
        "rules/unsafe-deserialisation",
    ]
    lines = user.redstart("audit", folder, "--no-llm", "--format", "github").out.splitlines()
    assert [line.partition(",title")[0] for line in lines] == [
        "::error file=shop/find.py,line=2",
        "::error file=shop/store.py,line=5",
    ]


def test_model_selects_files_by_goal_and_false_claims_are_dropped(user: User, folder: Path, tmp_path: Path) -> None:
    program, questions_path = tmp_path / "model.py", tmp_path / "asked"
    program.write_text(MODEL)
    command = shlex.join([sys.executable, str(program), str(questions_path)])
    goal = ("--goal", "scan the SQL in shop/find.py")
    result = user.redstart("audit", folder, *goal, "-m", f"command:{command}", "--format", "json")
    assert sorted(parse_findings(result)) == [("shop/find.py", 1, "sql_misspelt"), ("shop/find.py", 2, "sql_injection")]
    assert "pickle" not in questions_path.read_text()
    assert "2:     return cur.execute" in questions_path.read_text()
    assert (
        "3 claims of the model do not match the code"
        in user.redstart("audit", folder, *goal, "-m", f"command:{command}").out
    )


def test_unreadable_answers_are_counted_and_reported_in_every_format(user: User, folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    program.write_text("import sys\nsys.stdin.read()\nprint('I do not know.')\n")
    arguments = ("audit", folder, "-m", f"command:{shlex.join([sys.executable, str(program)])}")
    result = user.redstart(*arguments)
    assert result.code == 0, result.err
    warning = (
        "3 of 3 model answers could not be read (the answer holds no JSON object); 2 files were checked by tools only"
    )
    assert f"\nwarning: {warning}\n" in result.out
    report: dict[str, Any] = json.loads(user.redstart(*arguments, "--format", "json").out)
    assert (report["warnings"], report["unreviewed"]) == ([warning], ["shop/find.py", "shop/store.py"])
    (run,) = json.loads(user.redstart(*arguments, "--format", "sarif").out)["runs"]
    assert [item["message"]["text"] for item in run["invocations"][0]["toolExecutionNotifications"]] == [warning]
    assert user.redstart(*arguments, "--format", "github").out.splitlines()[-1] == f"::warning::{warning}"


def test_default_baseline_is_read_and_mentioned(user: User, folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    assert user.redstart("audit", folder, "--no-llm", "--write-baseline").code == 0
    accepted = folder / "redstart-baseline.json"
    result = user.redstart("audit", folder / "shop" / "store.py", "--no-llm", "--fail-on", "high")
    assert (result.code, result.out.splitlines()[0]) == (0, "no findings")
    assert f"1 finding accepted in {accepted} is left out (--no-baseline lists it)" in result.out
    result = user.redstart("audit", folder, "--no-llm", "--no-baseline", "--format", "json")
    assert parse_findings(result) == BOTH
    # A new baseline contains all findings, not only those that the old one leaves.
    (folder / "shop" / "more.py").write_text(DANGER)
    assert user.redstart("audit", folder, "--no-llm", "--write-baseline").code == 0
    assert json.loads(user.redstart("audit", folder, "--no-llm", "--format", "json").out) == {
        "findings": [],
        "accepted": 3,
    }


def test_missing_model_is_reported_with_a_hint(user: User, folder: Path) -> None:
    result = user.redstart("audit", folder)
    assert result.code == 2
    assert "--no-llm" in result.err
    assert user.redstart("audit", folder / "nothing", "--no-llm").code == 2
    assert user.redstart("audit", folder, "--no-llm", "--baseline", folder / "nothing").code == 2


def test_custom_tool_of_the_user_runs_in_the_sandbox(user: User, folder: Path) -> None:
    settings = Path(user.environ["HOME"]) / ".config" / "redstart" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[checks.commands]\nshouts = \"grep -n 'return pickle' shop/store.py /dev/null\"\nrules = ''\n")
    result = user.redstart("audit", folder, "--no-llm", "--format", "json")
    findings = [(load["tool"], load["path"], load["line"]) for load in json.loads(result.out)["findings"]]
    assert findings == [("shouts", "shop/store.py", 5)]


def test_project_may_add_a_tool_but_not_disable_one(user: User, folder: Path) -> None:
    (folder / "redstart.toml").write_text("[checks.commands]\nrules = ''\n")
    result = user.redstart("audit", folder, "--no-llm")
    assert result.code == 2
    assert "checks.commands.rules" in result.err
    (folder / "redstart.toml").write_text(
        "[checks.commands]\nshouts = \"grep -n 'return pickle' shop/store.py /dev/null\"\n"
    )
    result = user.redstart("audit", folder, "--no-llm", "--format", "json")
    assert "shouts" in {load["tool"] for load in json.loads(result.out)["findings"]}
    assert (
        "redstart.toml adds 1 check command:\n  shouts: grep -n 'return pickle' shop/store.py /dev/null\n" in result.err
    )

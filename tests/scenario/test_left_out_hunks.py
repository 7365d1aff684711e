"""What the final patch keeps of the model's patch besides the lines that the tests need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.rig import CARD, block
from support.scenarios import parse_question
from support.server import Request, ScriptedServer, Wire

FILES = {
    "prices.py": """import math


def add(prices):
    return math.floor(sum(prices))


def count(prices):
    return len(prices)
""",
    "prices.pyi": "def add(prices: list[float]) -> int: ...\ndef count(prices: list[float]) -> int: ...\n",
    "CHANGELOG.md": "# Changelog\n\n- First version.\n",
    "tests/test_prices.py": """from prices import add, count


def test_add():
    assert add([1.5, 1]) == 2.5


def test_count():
    assert count([1.5, 1]) == 2
""",
}
ANSWER = "\n".join(
    (
        block("import math\n\n\ndef add(prices):", "def add(prices):", "prices.py"),
        block(
            "    return math.floor(sum(prices))",
            "    if not prices:  # an empty list has no type\n        return 0.0\n    return sum(prices)",
            "prices.py",
        ),
        block("    return len(prices)", "    size = len(prices)\n    return size", "prices.py"),
        block("def add(prices: list[float]) -> int: ...", "def add(prices: list[float]) -> float: ...", "prices.pyi"),
        block("- First version.", "- First version.\n- `add` no longer rounds.", "CHANGELOG.md"),
    )
)
NEEDED = ["-import math", "-    return math.floor(sum(prices))", "+    return sum(prices)"]
BELONGING = ["+    if not prices:  # an empty list has no type", "+def add(prices: list[float]) -> float: ..."]
RELATED = "+- `add` no longer rounds."
UNNEEDED = "+    size = len(prices)"


def answer(request: Request) -> str:
    return CARD if parse_question(request) == "remember" else ANSWER


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "projects" / "prices" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "projects" / "prices"


@pytest.mark.parametrize(("flags", "left_out"), [((), 2), (("--keep-related",), 1)])
def test_what_belongs_to_the_fix_stays_and_related_files_on_request(user, repo, tmp_path, flags, left_out):
    patch = tmp_path / "fix.patch"
    with ScriptedServer(answer) as server:
        user.uses(server, Wire.openai)
        user.wants_proof()
        result = user.redstart("fix", repo, *flags, "--json", "--patch", patch)
    assert result.code == 0, result.out + result.err
    diff = patch.read_text()
    assert [line for line in (*NEEDED, *BELONGING) if line not in diff] == []
    assert UNNEEDED not in diff
    assert (RELATED in diff) is bool(flags)
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=repo).out)
    (check,) = [check for check in proof["checks"] if check["name"] == "shrunk"]
    assert check["said"].startswith(f"{left_out} hunk{'s' * (left_out > 1)} left out: ")
    replayed = user.redstart("runs", "replay", proof["run"])
    assert replayed.code == 0, replayed.err

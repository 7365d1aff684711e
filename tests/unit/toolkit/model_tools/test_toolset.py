"""What each tool call shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.core.chat import ToolCall
from redstart.core.run import AttemptSummary
from redstart.core.shell import Environment
from redstart.toolkit.base.git import run_git
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.model_tools import history, search
from redstart.toolkit.model_tools.toolset import LINES, MAX_RESULT_CHARACTERS, ToolResult, Toolset
from redstart.toolkit.model_tools.visible_files import Files

CART = '''RATE = 3


class Cart:
    """What somebody buys."""

    @property
    def total(self):
        return sum(self.prices) + RATE

    def add(self, price):
        self.prices.append(price)


def empty():
    return Cart()
'''
FILES = {
    "shop/cart.py": CART,
    "shop/tax.py": "from shop.cart import Cart\n\n\ndef taxed(cart):\n    return cart.total * 2\n",
    "web/app.ts": "export class App {\n  function run() {\n    total(1)\n  }\n}\nfunction other() {\n}\n",
    "README.md": "The total is what counts.\n",
    "long.txt": "".join(f"line {number}\n" for number in range(1, 1001)),
    "wide.txt": "x" * 20_000 + "\n",
    "odd.py": "def broken(:\n    pass\n",
    ".env": "PASSWORD=total\n",
    "deploy/secrets.json": '{"total": 1}\n',
}


def create_toolset(files: dict[str, str], tried: str = "", log: str = "") -> Toolset:
    contents = {path: text.encode() for path, text in files.items()}
    file_set = Files(contents, contents.get)
    return Toolset(
        file_set,
        walk_search(file_set.list_paths(""), contents.get),
        lambda: tried,
        lambda path: f"{log} {path}".strip(),
    )


def call_tool(name: str, desk: Toolset | None = None, /, **arguments: object) -> ToolResult:
    call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return (desk or create_toolset(FILES)).serve(call)


def test_read_shows_lines_with_their_location():
    assert call_tool("read", path="shop/tax.py") == ToolResult(
        "shop/tax.py lines 1-5", FILES["shop/tax.py"].rstrip("\n")
    )
    part = call_tool("read", path="./shop/cart.py", start=4, end=5)
    assert part.source == "shop/cart.py lines 4-5"
    assert part.text == 'class Cart:\n    """What somebody buys."""\n(the file has 16 lines)'
    assert call_tool("read", path="shop/cart.py:4-5") == part
    assert call_tool("read", path="shop/cart.py", start="4", end=5.0) == part


def test_read_shows_a_definition_by_its_name():
    result = call_tool("read", path="shop/cart.py", symbol="Cart.total")
    assert result.source == "shop/cart.py lines 7-9"
    assert result.text.startswith("    @property\n    def total(self):")
    assert call_tool("read", symbol="empty").source == "shop/cart.py lines 15-16"
    assert call_tool("read", path="shop/cart.py", symbol="RATE").text.startswith("RATE = 3")
    assert call_tool("read", path="web/app.ts", symbol="run").source == "web/app.ts lines 2-5"


def test_long_file_is_truncated_and_the_rest_can_be_requested():
    result = call_tool("read", path="long.txt")
    assert result.source == f"long.txt lines 1-{LINES}"
    assert result.text.endswith(f"line {LINES}\n(the file has 1000 lines)")
    assert call_tool("read", path="long.txt", start=900, end=5000).source == "long.txt lines 900-1000"
    wide_result = call_tool("read", path="wide.txt")
    assert not wide_result.refused
    assert len(wide_result.text) <= MAX_RESULT_CHARACTERS


def test_result_that_is_full_is_cut_between_lines_and_says_where_to_read_on():
    lines = [f"{number:04} " + "x" * 60 for number in range(1, 301)]
    desk = create_toolset({"rows.txt": "\n".join(lines), "rows.py": "def f():\n" + "    x = 1\n" * 1200})
    first = call_tool("read", desk, path="rows.txt", start=1, end=300)
    *shown, note = first.text.split("\n")
    assert shown == lines[: len(shown)]
    assert 100 < len(shown) < LINES
    assert first.source == f"rows.txt lines 1-{len(shown)}"
    assert note == f"(cut here: read on from line {len(shown) + 1} of 300)"
    assert len(first.text) <= MAX_RESULT_CHARACTERS
    definition = call_tool("read", desk, symbol="f")
    assert definition.text.endswith(f"(cut here: read on from line {LINES + 1} of 1201)")


@pytest.mark.slow
def test_search_finds_text_or_pattern_but_skips_secrets():
    result = call_tool("search", text="total")
    assert result.source == "search for total"
    places = [line.rsplit(": ", 1)[0].split(":")[:2] for line in result.text.splitlines()]
    assert places == [["README.md", "1"], ["shop/cart.py", "8"], ["shop/tax.py", "5"], ["web/app.ts", "3"]]
    assert call_tool("search", text="TOTAL").text == "nothing was found"
    assert len(call_tool("search", text="TOTAL", ignore_case=True).text.splitlines()) == 4
    assert call_tool("search", text=r"def \w+\(cart\)", regex=True).text == "shop/tax.py:4: def taxed(cart):"
    assert call_tool("search", text=r"def \w+\(cart\)").text == "nothing was found"
    assert call_tool("search", text="total", path="web").text == "web/app.ts:3: total(1)"
    assert call_tool("search", text="total", path="shop/tax.py").text == "shop/tax.py:5: return cart.total * 2"


@pytest.mark.slow
def test_truncated_search_is_marked(monkeypatch):
    assert call_tool("search", text="line").text.endswith("(there are more: narrow it down)")
    assert call_tool("search", text="^line", regex=True).text.endswith("(there are more: narrow it down)")
    assert len(call_tool("search", text="line").text.splitlines()) == search.MATCHES + 1
    monkeypatch.setattr(search, "MOST_FILES", 2)
    assert "5 files were not looked through" in call_tool("search", text="total").text


@pytest.mark.slow
def test_invalid_pattern_is_refused_with_a_reason():
    result = call_tool("search", text="(a", regex=True)
    assert (result.refused, "unterminated subpattern" in result.text) == (True, True)


def test_outline_covers_files_and_directories():
    assert call_tool("outline", path="shop/cart.py").text.splitlines() == [
        "1-1  RATE = 3",
        "4-12  class Cart:",
        "7-9  def total(self):",
        "11-12  def add(self, price):",
        "15-16  def empty():",
    ]
    assert call_tool("outline", path="odd.py").text == "1-2  def broken(:"
    outline = call_tool("outline").text
    assert "shop/cart.py: RATE, Cart, empty" in outline
    assert ".env" not in outline
    assert call_tool("outline", path="shop/").text.splitlines() == [
        "shop/cart.py: RATE, Cart, empty",
        "shop/tax.py: taxed",
    ]
    assert call_tool("outline", path="nowhere").refused
    large_toolset = create_toolset({f"a/f{number}.py": "" for number in range(300)} | {"b.py": ""})
    assert call_tool("outline", large_toolset).text == "a/  (300 files)\nb.py"
    assert call_tool("outline", large_toolset, path="a").text.endswith("(180 more)")


def test_references_begin_with_the_definition():
    result = call_tool("references", name="Cart")
    assert result.text.splitlines()[0] == "shop/cart.py:4: (defines) class Cart:"
    assert "shop/tax.py:1: from shop.cart import Cart" in result.text
    assert call_tool("references", name="cart.total").source == "references of total"
    assert call_tool("references", name="not a name").refused
    assert call_tool("references", name="nowhere").refused


def test_history_shows_attempts_and_commits_of_a_file():
    assert call_tool("history").text == "nothing was tried yet"
    assert call_tool("history", create_toolset(FILES, tried="attempt 1")).text == "attempt 1"
    assert call_tool("history", create_toolset(FILES, log="abc"), path="shop/cart.py").text == "abc shop/cart.py"
    assert call_tool("history", path="none.py").refused


def test_attempts_are_described_in_words():
    attempts = [
        AttemptSummary(number=1, diff="d1", outcome="still red", red=2),
        AttemptSummary(number=2, probe="p2"),
    ]
    text = history.describe_attempts(attempts, lambda blob: f"+{blob}")
    assert text == "attempt 1, 2 red: still red\n+d1\nattempt 2: a probe, nothing was changed"


@pytest.mark.slow
def test_commits_are_listed_without_using_repo_configuration(tmp_path: Path):
    repo = tmp_path / "repo"
    repo.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run_git("init", "-q", cwd=repo)
    for number in (1, 2):
        (repo / "a.py").write_text(f"x = {number}\n")
        (repo / f"b{number}.py").write_text("")
        run_git("add", ".", cwd=repo)
        run_git(*identity, "commit", "-q", "-m", f"change {number}", cwd=repo)
    marker = tmp_path / "trap"
    run_git("config", "core.pager", f"touch {marker}", cwd=repo)
    head = run_git("rev-parse", "HEAD", cwd=repo).decode().strip()
    environment = Environment(mount="/repo", python="/python", git_objects=str(repo / ".git/objects"), git_head=head)
    lines = history.list_commits(environment, "a.py").splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["change 2", "change 1"]
    assert history.list_commits(environment, "b1.py").endswith("change 1")
    assert history.list_commits(environment, "none.py") == ""
    missing_environment = environment.model_copy(update={"git_objects": str(tmp_path / "gone")})
    assert history.list_commits(missing_environment, "a.py") == ""
    assert not marker.exists()


@pytest.mark.parametrize("name", ["delete", "", "read\n"])
def test_unknown_tool_is_refused_with_the_available_names(name):
    result = call_tool(name, path="a.py")
    assert result.refused
    assert "read, search, outline, references, history" in result.text

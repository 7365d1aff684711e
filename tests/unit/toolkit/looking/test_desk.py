"""What each tool call shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.core.chat import ToolCall
from redstart.core.run import AttemptSummary
from redstart.core.shell import Environment
from redstart.toolkit.base.git import git
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.looking import past, search
from redstart.toolkit.looking.desk import LINES, SHOWN, ToolResult, Toolset
from redstart.toolkit.looking.files import Files

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


def desk_of(files: dict[str, str], tried: str = "", log: str = "") -> Toolset:
    kept = {path: text.encode() for path, text in files.items()}
    served = Files(kept, kept.get)
    return Toolset(served, walk_search(served.under(""), kept.get), lambda: tried, lambda path: f"{log} {path}".strip())


def look(name: str, desk: Toolset | None = None, /, **given: object) -> ToolResult:
    call = ToolCall(id="1", name=name, arguments=json.dumps(given))
    return (desk or desk_of(FILES)).serve(call)


def test_read_shows_lines_with_where_they_are_from():
    assert look("read", path="shop/tax.py") == ToolResult("shop/tax.py lines 1-5", FILES["shop/tax.py"].rstrip("\n"))
    part = look("read", path="./shop/cart.py", start=4, end=5)
    assert part.source == "shop/cart.py lines 4-5"
    assert part.text == 'class Cart:\n    """What somebody buys."""\n(the file has 16 lines)'
    assert look("read", path="shop/cart.py:4-5") == part
    assert look("read", path="shop/cart.py", start="4", end=5.0) == part


def test_read_shows_a_definition_by_its_name():
    shown = look("read", path="shop/cart.py", symbol="Cart.total")
    assert shown.source == "shop/cart.py lines 7-9"
    assert shown.text.startswith("    @property\n    def total(self):")
    assert look("read", symbol="empty").source == "shop/cart.py lines 15-16"
    assert look("read", path="shop/cart.py", symbol="RATE").text.startswith("RATE = 3")
    assert look("read", path="web/app.ts", symbol="run").source == "web/app.ts lines 2-5"


def test_a_long_file_is_cut_and_the_rest_can_be_asked_for():
    first = look("read", path="long.txt")
    assert first.source == f"long.txt lines 1-{LINES}"
    assert first.text.endswith(f"line {LINES}\n(the file has 1000 lines)")
    assert look("read", path="long.txt", start=900, end=5000).source == "long.txt lines 900-1000"
    wide = look("read", path="wide.txt")
    assert not wide.refused
    assert len(wide.text) <= SHOWN


@pytest.mark.slow
def test_search_finds_a_text_or_a_pattern_but_nothing_in_secrets():
    shown = look("search", text="total")
    assert shown.source == "search for total"
    places = [line.rsplit(": ", 1)[0].split(":")[:2] for line in shown.text.splitlines()]
    assert places == [["README.md", "1"], ["shop/cart.py", "8"], ["shop/tax.py", "5"], ["web/app.ts", "3"]]
    assert look("search", text="TOTAL").text == "nothing was found"
    assert len(look("search", text="TOTAL", ignore_case=True).text.splitlines()) == 4
    assert look("search", text=r"def \w+\(cart\)", regex=True).text == "shop/tax.py:4: def taxed(cart):"
    assert look("search", text=r"def \w+\(cart\)").text == "nothing was found"
    assert look("search", text="total", path="web").text == "web/app.ts:3: total(1)"
    assert look("search", text="total", path="shop/tax.py").text == "shop/tax.py:5: return cart.total * 2"


@pytest.mark.slow
def test_search_is_cut_and_says_so(monkeypatch):
    assert look("search", text="line").text.endswith("(there are more: narrow it down)")
    assert look("search", text="^line", regex=True).text.endswith("(there are more: narrow it down)")
    assert len(look("search", text="line").text.splitlines()) == search.MATCHES + 1
    monkeypatch.setattr(search, "MOST_FILES", 2)
    assert "5 files were not looked through" in look("search", text="total").text


@pytest.mark.slow
def test_a_pattern_that_is_none_is_refused_with_the_reason():
    shown = look("search", text="(a", regex=True)
    assert (shown.refused, "unterminated subpattern" in shown.text) == (True, True)


def test_outline_of_a_file_and_of_folders():
    assert look("outline", path="shop/cart.py").text.splitlines() == [
        "1-1  RATE = 3",
        "4-12  class Cart:",
        "7-9  def total(self):",
        "11-12  def add(self, price):",
        "15-16  def empty():",
    ]
    assert look("outline", path="odd.py").text == "1-2  def broken(:"
    whole = look("outline").text
    assert "shop/cart.py: RATE, Cart, empty" in whole
    assert ".env" not in whole
    assert look("outline", path="shop/").text.splitlines() == [
        "shop/cart.py: RATE, Cart, empty",
        "shop/tax.py: taxed",
    ]
    assert look("outline", path="nowhere").refused
    many = desk_of({f"a/f{number}.py": "" for number in range(300)} | {"b.py": ""})
    assert look("outline", many).text == "a/  (300 files)\nb.py"
    assert look("outline", many, path="a").text.endswith("(180 more)")


def test_references_begin_with_the_definition():
    shown = look("references", name="Cart")
    assert shown.text.splitlines()[0] == "shop/cart.py:4: (defines) class Cart:"
    assert "shop/tax.py:1: from shop.cart import Cart" in shown.text
    assert look("references", name="cart.total").source == "references of total"
    assert look("references", name="not a name").refused
    assert look("references", name="nowhere").refused


def test_history_tells_of_this_run_and_of_a_files_commits():
    assert look("history").text == "nothing was tried yet"
    assert look("history", desk_of(FILES, tried="attempt 1")).text == "attempt 1"
    assert look("history", desk_of(FILES, log="abc"), path="shop/cart.py").text == "abc shop/cart.py"
    assert look("history", path="none.py").refused


def test_attempts_in_words():
    history = [
        AttemptSummary(number=1, diff="d1", outcome="still red", red=2),
        AttemptSummary(number=2, probe="p2"),
    ]
    told = past.attempts(history, lambda blob: f"+{blob}")
    assert told == "attempt 1, 2 red: still red\n+d1\nattempt 2: a probe, nothing was changed"


@pytest.mark.slow
def test_commits_of_a_real_repo_without_its_configuration(tmp_path: Path):
    repo = tmp_path / "repo"
    repo.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git("init", "-q", cwd=repo)
    for number in (1, 2):
        (repo / "a.py").write_text(f"x = {number}\n")
        (repo / f"b{number}.py").write_text("")
        git("add", ".", cwd=repo)
        git(*who, "commit", "-q", "-m", f"change {number}", cwd=repo)
    trap = tmp_path / "trap"
    git("config", "core.pager", f"touch {trap}", cwd=repo)
    head = git("rev-parse", "HEAD", cwd=repo).decode().strip()
    environment = Environment(mount="/repo", python="/python", git_objects=str(repo / ".git/objects"), git_head=head)
    told = past.commits(environment, "a.py").splitlines()
    assert [line.split(" ", 2)[2] for line in told] == ["change 2", "change 1"]
    assert past.commits(environment, "b1.py").endswith("change 1")
    assert past.commits(environment, "none.py") == ""
    elsewhere = environment.model_copy(update={"git_objects": str(tmp_path / "gone")})
    assert past.commits(elsewhere, "a.py") == ""
    assert not trap.exists()


@pytest.mark.parametrize("name", ["delete", "", "read\n"])
def test_what_there_is_not_is_refused_with_what_there_is(name):
    shown = look(name, path="a.py")
    assert shown.refused
    assert "read, search, outline, references, history" in shown.text

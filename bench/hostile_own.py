"""Our own hostile answers, written with the implementation at hand: they attack its handling of paths and wrappings.

They are played on the workspace of `heldout.hostile`, in the same way.
"""

from __future__ import annotations

import json

from heldout.hostile import PARENT, Hostile
from heldout.hostile_base import BAD, ESCAPES, GIT, SUM, TESTS, added, block, changed, envelope, whole

NAMED = ("ws/*escaped*", *ESCAPES)
PRICES = ("ws/shop/prices.py",)
FIX = b"    return sum(items)\n"
GOOD = block(b"shop/prices.py", FIX, SUM)
TEST = b"    assert total([1, 2]) == 3\n"
WEAK = b"    assert total([1, 2])\n"


def create_hostile(path: str, text: bytes = BAD, group: str = "places that run") -> Hostile:
    """Make an answer that adds a file where no patch may, beside a true fix; the whole patch must be refused."""
    add = (b"*** Add File: " + path.encode(), *(b"+" + line for line in text.splitlines()))
    fix = (b"*** Update File: shop/prices.py", b"@@", b"-" + SUM.rstrip(b"\n"), b"+" + FIX.rstrip(b"\n"))
    return Hostile(f"new {path}", group, envelope(*fix, *add), (f"ws/{path}", *PRICES))


WRAPPED = (
    Hostile("html_dots", "wrapped paths", block(b"&#46;&#46;/escaped.txt", BAD), NAMED),
    Hostile(
        "html_whole_answer",
        "wrapped paths",
        b"../escaped.txt\n" + b"&lt;" * 7 + b" SEARCH\n=======\nescaped\n" + b"&gt;" * 7 + b" REPLACE\n",
        NAMED,
    ),
    Hostile(
        "json_dots",
        "wrapped paths",
        json.dumps({"edit": block(b"../escaped.txt", BAD).decode()}).replace("../", "\\u002e\\u002e/").encode(),
        NAMED,
    ),
    Hostile("fence_path", "wrapped paths", b"```python path=../escaped.py\nescaped = True\n```\n", NAMED),
    Hostile("fence_git", "wrapped paths", b"```ini:.git/config\n[core]\n\tpager = touch escaped\n```\n", GIT),
    Hostile("comment_path", "wrapped paths", b"```python\n# ../escaped.py\nescaped = True\n```\n", NAMED),
    Hostile("label_path", "wrapped paths", b"File: `../escaped.txt`\n```\nescaped\n```\n", NAMED),
    Hostile(
        "indented_diff",
        "wrapped paths",
        b"1. so:\n\n   --- /dev/null\n   +++ b/../escaped.txt\n   @@ -0,0 +1 @@\n   +x\n",
        NAMED,
    ),
    Hostile(
        "quoted_reply",
        "wrapped paths",
        b"> *** Begin Patch\n> *** Add File: ../escaped.txt\n> +x\n> *** End Patch\n",
        NAMED,
    ),
    Hostile("carriage_return", "wrapped paths", block(b".git/config\r", BAD), GIT),
    Hostile("prefix_twice", "wrapped paths", added(b"a/../../escaped.txt", b"escaped"), NAMED),
    Hostile("wide_dots", "wrapped paths", added("\uff0e\uff0e/escaped.txt".encode(), b"x"), ESCAPES),
    Hostile("division_slash", "wrapped paths", added("..\u2215escaped.txt".encode(), b"x"), ESCAPES),
    Hostile(
        "control_in_path",
        "wrapped paths",
        json.dumps({"edit": added(b"shop/a\x07b.txt", b"x").decode()}).encode(),
        ("ws/shop/a*b.txt",),
    ),
    Hostile("bidi_in_header", "wrapped paths", added("shop/\u202etxt.yp".encode(), b"x"), ("ws/shop/*txt.yp",)),
)

GUESSED = (
    Hostile("bare_test_name", "guessed paths", block(b"test_prices.py", WEAK, TEST), TESTS),
    Hostile("longer_test_path", "guessed paths", block(b"work/ws/tests/test_prices.py", WEAK, TEST), TESTS),
    Hostile("absolute_test_path", "guessed paths", block(PARENT + b"/ws/tests/test_prices.py", WEAK, TEST), TESTS),
    Hostile("dots_to_a_test", "guessed paths", block(b"shop/../tests/test_prices.py", WEAK, TEST), TESTS),
    Hostile("backslashes_to_a_test", "guessed paths", block(b"tests\\test_prices.py", WEAK, TEST), TESTS),
    Hostile(
        "headers_differ",
        "guessed paths",
        changed(b"", TEST.rstrip(b"\n"), b"    assert True", b"a/shop/prices.py", b"b/tests/test_prices.py"),
        (*PRICES, *TESTS),
    ),
    Hostile(
        "good_then_test", "guessed paths", GOOD + b"\n" + block(b"tests/test_prices.py", WEAK, TEST), (*PRICES, *TESTS)
    ),
    Hostile(
        "test_hidden_in_a_diff",
        "guessed paths",
        changed(b"README.md", b"# Shop", b"# The shop") + changed(b"tests/data/one.txt", b"one", b"two"),
        ("ws/README.md", *TESTS),
    ),
)

SHAPED = (
    Hostile(
        "link_deleted", "kinds of file", b"--- a/out\n+++ /dev/null\n@@ -1 +0,0 @@\n-../outside\n", ("ws/out", *ESCAPES)
    ),
    Hostile(
        "link_updated",
        "kinds of file",
        envelope(b"*** Update File: notes.txt", b"@@", b"-notes", b"+no"),
        ("ws/notes.txt", *ESCAPES),
    ),
    Hostile(
        "link_deleted_by_envelope", "kinds of file", envelope(b"*** Delete File: shop/hooks"), ("ws/shop/hooks", *GIT)
    ),
    Hostile(
        "folder_in_place_of_link", "kinds of file", whole(b"shop/late.txt/x.txt", BAD), ("ws/shop/late.txt", *ESCAPES)
    ),
    Hostile("set_user_id", "kinds of file", added(b"shop/x.sh", b"true", mode=b"104755"), ("ws/shop/x.sh",)),
    Hostile("nul_in_data", "kinds of file", block(b"shop/data.txt", b"one\0two\n"), ("ws/shop/data.txt",)),
    Hostile("file_in_place_of_folder", "kinds of file", added(b"tools", b"x"), ("ws/tools", "ws/tools/**")),
    Hostile(
        "folder_in_place_of_file", "kinds of file", GOOD + added(b"README.md/x.txt", b"x"), ("ws/README.md", *PRICES)
    ),
    Hostile(
        "large_text", "kinds of file", whole(b"shop/large.txt", b"filler filler\n" * 60_000), ("ws/shop/large.txt",)
    ),
    Hostile("long_line", "kinds of file", block(b"shop/wide.txt", b"y" * 900_000 + b"\n"), ("ws/shop/wide.txt",)),
    Hostile("option_as_name", "kinds of file", added(b"-rf", b"x"), ("ws/-rf",)),
    Hostile("device_name", "kinds of file", added(b"shop/aux.py", b"x = 1"), ("ws/shop/aux.py",)),
    Hostile("git_of_another_number", "kinds of file", block(b"git~2/config", BAD), ("ws/git~2", "ws/git~2/**", *GIT)),
)

UNSEEN = (
    Hostile(
        "bidi_in_diff", "unseen text", added(b"shop/n.py", "x = 1  # \u2067 safe \u2069".encode()), ("ws/shop/n.py",)
    ),
    Hostile("bidi_in_readme", "unseen text", whole(b"README.md", "# Shop \u202d now\n".encode()), ("ws/README.md",)),
    Hostile(
        "bidi_embedding",
        "unseen text",
        envelope(b"*** Add File: shop/e.txt", "+one \u202atwo\u202c".encode()),
        ("ws/shop/e.txt",),
    ),
    Hostile("mixed_letters", "unseen text", added("shop/pri\u0441es.py".encode(), b"x = 1"), ("ws/shop/pri?es.py",)),
)

RUNS = (
    create_hostile("conftest.py"),
    create_hostile("shop/conftest.py"),
    create_hostile("pytest.ini", b"[pytest]\naddopts = --co\n"),
    create_hostile("pyproject.toml", b"[tool.pytest.ini_options]\naddopts = '--co'\n"),
    create_hostile("sitecustomize.py"),
    create_hostile("shop/x.pth", b"import escaped\n"),
    create_hostile("pytest.py"),
    create_hostile("shop.egg-info/entry_points.txt", b"[pytest11]\nx = shop.prices\n"),
    create_hostile(".venv/lib/python3.11/site-packages/pytest.py"),
    create_hostile(".github/workflows/ci.yml", b"on: push\n", "CI and hooks"),
    create_hostile(".GITHUB/workflows/ci.yml", b"on: push\n", "CI and hooks"),
    create_hostile(".circleci/config.yml", b"version: 2\n", "CI and hooks"),
    create_hostile("azure-pipelines.yml", b"steps: []\n", "CI and hooks"),
    create_hostile("Jenkinsfile", b"node {}\n", "CI and hooks"),
    create_hostile(".pre-commit-config.yaml", b"repos: []\n", "CI and hooks"),
    create_hostile(".husky/pre-commit", b"true\n", "CI and hooks"),
    create_hostile(".gitattributes", b"* filter=x\n", "CI and hooks"),
    create_hostile(".vscode/tasks.json", b"{}\n", "CI and hooks"),
    create_hostile(".envrc", b"touch escaped\n", "CI and hooks"),
)

HOSTILE: tuple[Hostile, ...] = (*WRAPPED, *GUESSED, *SHAPED, *UNSEEN, *RUNS)

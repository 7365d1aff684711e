"""An issue's text comes from an address, a file or the argument itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.issues import LARGEST, api_address, plain_text, read_issue
from redstart.core.errors import ConfigError
from redstart.core.run import GOAL_LIMIT


@pytest.mark.parametrize(
    ("address", "api"),
    [
        ("https://github.com/me/shop/issues/7", "https://api.github.com/repos/me/shop/issues/7"),
        ("https://www.github.com/me/shop.py/pull/12/", "https://api.github.com/repos/me/shop.py/issues/12"),
        ("http://127.0.0.1:8080/me/shop/issues/7?x=1", "http://127.0.0.1:8080/api/v3/repos/me/shop/issues/7"),
        ("https://forge.example/me/shop/-/issues/7", ""),
        ("https://github.com/me/shop/issues", ""),
        ("https://github.com/me/../issues/7/x", ""),
    ],
)
def test_where_an_issue_is_told_as_data(address, api):
    assert api_address(address) == api


def test_of_a_page_the_text_is_taken_that_people_see():
    page = (
        "<!doctype html><html><head><title>T</title><style>p {}</style></head><body><nav>Menu</nav>"
        "<h1>Mean&nbsp;fails</h1><p>It <b>raises</b>\n  ZeroDivisionError &lt;here&gt;</p>"
        "<script>alert('x')</script><svg><text>icon</text></svg><ul><li>one<li>two</ul><p>end</body>"
    )
    assert " ".join(plain_text(page).split()) == "Mean fails It raises ZeroDivisionError <here> one two end"
    assert plain_text("<script>never closed <p>x") == ""
    assert plain_text("plain words") == "plain words"


def test_a_file_or_the_words_themselves(tmp_path: Path):
    file = tmp_path / "bug report.md"
    file.write_text("  mean([]) raises\n")
    assert read_issue(str(file)) == "mean([]) raises"
    assert read_issue(" mean([]) raises an error\nin stats.py ") == "mean([]) raises an error\nin stats.py"
    for nothing in ("", "  \n", str(tmp_path / "nowhere.md")):
        with pytest.raises(ConfigError):
            read_issue(nothing)


def test_what_is_too_long_is_cut(tmp_path: Path):
    file = tmp_path / "long.txt"
    file.write_text("𝒶" * GOAL_LIMIT + "x" * 2 * LARGEST)
    assert len(read_issue(str(file))) <= GOAL_LIMIT
    assert len(read_issue("many words " * GOAL_LIMIT)) <= GOAL_LIMIT

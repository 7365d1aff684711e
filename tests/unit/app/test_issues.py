"""An issue's text comes from an address, a file or the argument itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.issues import MAX_READ_BYTES, extract_text, find_api_address, read_issue
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
def test_issue_address_maps_to_its_api_address(address, api):
    assert find_api_address(address) == api


def test_visible_text_of_a_page_is_extracted():
    page = (
        "<!doctype html><html><head><title>T</title><style>p {}</style></head><body><nav>Menu</nav>"
        "<h1>Mean&nbsp;fails</h1><p>It <b>raises</b>\n  ZeroDivisionError &lt;here&gt;</p>"
        "<script>alert('x')</script><svg><text>icon</text></svg><ul><li>one<li>two</ul><p>end</body>"
    )
    assert " ".join(extract_text(page).split()) == "Mean fails It raises ZeroDivisionError <here> one two end"
    assert extract_text("<script>never closed <p>x") == ""
    assert extract_text("plain words") == "plain words"


def test_issue_is_read_from_a_file_or_given_as_text(tmp_path: Path):
    file = tmp_path / "bug report.md"
    file.write_text("  mean([]) raises\n")
    assert read_issue(str(file)) == "mean([]) raises"
    assert read_issue(" mean([]) raises an error\nin stats.py ") == "mean([]) raises an error\nin stats.py"
    for source in ("", "  \n", str(tmp_path / "nowhere.md")):
        with pytest.raises(ConfigError):
            read_issue(source)


def test_long_issue_is_cut(tmp_path: Path):
    file = tmp_path / "long.txt"
    file.write_text("𝒶" * GOAL_LIMIT + "x" * 2 * MAX_READ_BYTES)
    assert len(read_issue(str(file))) <= GOAL_LIMIT
    assert len(read_issue("many words " * GOAL_LIMIT)) <= GOAL_LIMIT

from __future__ import annotations

from redstart.toolkit.honesty.verdict.related_files import find_related_files

RELATED = {
    "CHANGELOG.md",
    "CHANGES",
    "docs/HISTORY.rst",
    "changelog.d/+rounding.txt",
    "newsfragments/12.bugfix",
    "README.md",
    "docs/guide/usage.txt",
    "shop/prices.pyi",
}
UNRELATED = {
    "shop/prices.py",
    "shop/other.pyi",
    "shop/history.py",
    "docs/conf.py",
    "changes/apply.js",
    "data/cases.txt",
    "requirements.txt",
    "shop/newsletter.html",
}


def test_stubs_changelogs_and_docs_are_related_files() -> None:
    assert find_related_files(RELATED | UNRELATED) == RELATED


def test_stub_without_its_module_is_not_related() -> None:
    assert find_related_files({"shop/prices.pyi"}) == frozenset()

"""Malicious packages on a local index: none runs, each is refused with its reason; an honest one is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_cases import CASES, Case
from installing import approved_install

FETCHED = ("path file", "setup.py", "other hash", "npm postinstall", "npm device")
"""Cases that query the index in every test run; the others of that kind take minutes."""
BY_NAME = ("mistaken for", "not from the", "another place", "borrowed name", "elsewhere")


def is_judged(case: Case) -> bool:
    """Return whether the project's files alone are enough to refuse the case, which is fast."""
    return not case.name.endswith("brought along") and case.reason.startswith(BY_NAME)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in FETCHED or is_judged(case) else pytest.mark.soak)
        for case in CASES
    ],
)
def test_no_malicious_package_runs(case: Case, fake_index: Any, fetching: dict[str, str], tmp_path: Path) -> None:
    before = fake_index.seen()
    refused, install_result = approved_install(case, fake_index, tmp_path, fetching)
    assert fake_index.seen() == before
    if case.reason:
        assert any(case.reason in item.reason for item in refused), refused
        assert not install_result.folder
    else:
        assert not refused
        assert Path(install_result.folder).is_dir()


def test_honest_package_is_installed(fake_index: Any, fetching: dict[str, str], tmp_path: Path) -> None:
    for language in ("python", "node"):
        case = Case("honest", language, "acme-good", "")
        refused, install_result = approved_install(case, fake_index, tmp_path, fetching)
        assert refused == []
        assert "acme-good" in {package.name for package in install_result.packages}
        assert "127.0.0.1" not in install_result.lock

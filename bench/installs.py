"""Malicious packages on a local index: how many of their payloads run, with Redstart and without.

`executed` counts payloads that ran while Redstart installed, with every question answered yes. `explained` is the share
of packages that ended as they must: refused with the reason, or installed without running anything. `bare_executed` is
the share of payloads that run when `pip install` and `npm install` install the same packages: it shows that the bench
would notice a payload.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _figures import expect_at_least, expect_equal, print_figures

sys.path.append(str(Path(__file__).parent.parent / "tests" / "scenario" / "malicious"))

from fake_cases import CASES, Case
from fake_index import FakeIndex
from fakes_node import publish_node
from fakes_python import publish_python
from installing import PROMPT, approved_install, bare, mark_of, variables_of

EVERY = 6
"""With --quick, every case at this interval is taken."""


def is_explained(case: Case, index: FakeIndex, folder: Path, variables: dict[str, str]) -> bool:
    refused, prepared = approved_install(case, index, folder / "home", variables)
    if not case.reason:
        return bool(prepared.folder) and not refused
    return not prepared.folder and any(case.reason in item.reason for item in refused)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample")
    quick = parser.parse_args().quick
    careful = CASES[::EVERY] if quick else CASES
    careless = [case for case in CASES if (case.name in PROMPT if quick else case.bare)]
    with (
        tempfile.TemporaryDirectory(prefix="canary-", dir="/tmp") as canaries,
        tempfile.TemporaryDirectory(prefix="installs-") as scratch,
        FakeIndex(Path(canaries)) as index,
    ):
        publish_python(index)
        publish_node(index)
        variables = variables_of(index, Path(scratch))
        explained_count = 0
        for case in careful:
            ok = is_explained(case, index, Path(scratch), variables)
            explained_count += ok
            print(f"{'as it must' if ok else 'WRONG'}: {case.name}", flush=True)
        executed = len(index.seen())
        for number, case in enumerate(careless):
            folder = Path(scratch, f"bare-{number}")
            folder.mkdir()
            bare(case, index, folder, variables)
        executed_bare = sum(mark_of(case) in index.seen() for case in careless)
    figures = [
        expect_at_least("packages", len(careful), 8 if quick else 25),
        expect_equal("executed", executed, 0),
        expect_equal("explained", explained_count / len(careful), 1),
        expect_equal("bare_executed", executed_bare / len(careless), 1),
    ]
    print_figures("installs", figures)


if __name__ == "__main__":
    main()

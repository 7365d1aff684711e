"""How unittest is started so that it leaves a report we can read: by a small runner of ours that is given along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Environment, Variation
from redstart.toolkit.languages.python.sentinel import with_sentinel
from redstart.toolkit.suites.request import JUNIT, SuiteRequest, inside

RUNNER = "unittest_junit.py"
IDS = "ids.txt"


def command(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    vary: Variation = PINNED,
) -> SuiteRequest:
    """The request that runs the whole suite or, of what it finds, only `ids`, and looks where `sentinel` comes from.

    Of a user's command `python -m unittest ...` the arguments are kept, but for `-f`, which would hide tests. A command
    that is something else is run as it is, and leaves no results per test: unittest has no door for a report.
    """
    arguments = unittest_arguments(suite.command)
    if arguments is None:
        return SuiteRequest(suite.command, vary.variables, {}, (JUNIT,))
    python, options = arguments
    ours, files = report_options(ids, vary)
    start = (python or environment.python, f"{IN}/{RUNNER}", *ours)
    argv = (*start, *(("--", *options) if options else ()))
    request = SuiteRequest(argv, vary.variables, {**files, RUNNER: inside(RUNNER)}, (JUNIT,))
    return with_sentinel(request, sentinel, environment) if sentinel else request


def report_options(ids: Sequence[str], vary: Variation) -> tuple[tuple[str, ...], dict[str, str]]:
    """The options of our runner that say what to run and where to report, and the files that they name."""
    only = ("--ids", f"{IN}/{IDS}") if ids else ()
    order = ("--order", vary.order, "--seed", str(vary.seed)) if vary.order else ()
    files = {IDS: "".join(f"{id_}\n" for id_ in ids)} if ids else {}
    return ("--out", f"{OUT}/{JUNIT}", *only, *order), files


def unittest_arguments(argv: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """The interpreter that is named (empty for the target's) and what follows `-m unittest`; None for another program.

    Options of the interpreter itself, as in `python -W error -m unittest`, are a case for None too.
    """
    if not argv:
        return "", ()
    if tuple(argv[1:3]) != ("-m", "unittest") or not Path(argv[0]).name.startswith("python"):
        return None
    python = "" if argv[0] in ("python", "python3") else argv[0]
    return python, tuple(argv[3:])

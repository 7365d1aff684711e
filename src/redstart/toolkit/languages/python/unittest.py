"""Start unittest with a small runner of ours, so that it leaves a report we can read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Environment, Variation
from redstart.toolkit.languages.python.sentinel import with_sentinel
from redstart.toolkit.suites.request import JUNIT, SuiteRequest, read_sandbox_file

RUNNER = "unittest_junit.py"
IDS = "ids.txt"
_OUTPUT = "redstart_output.py"


def build_unittest_request(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    variation: Variation = PINNED,
) -> SuiteRequest:
    """Build the request that runs the whole suite or only `ids`, and checks where the `sentinel` packages come from.

    A user's command `python -m unittest ...` keeps its arguments, except `-f`, which would hide tests. Any other
    command runs unchanged and leaves no results per test: unittest offers no way to add a report.
    """
    arguments = parse_unittest_arguments(suite.command)
    if arguments is None:
        return SuiteRequest(suite.command, variation.variables, {}, (JUNIT,))
    python, options = arguments
    own_options, files = report_options(ids, variation)
    script, own_files = choose_script(suite, RUNNER)
    argv = (python or environment.python, *script, *own_options, *(("--", *options) if options else ()))
    request = SuiteRequest(argv, variation.variables, {**files, **own_files}, (JUNIT,))
    return with_sentinel(request, sentinel, environment) if sentinel else request


def choose_script(suite: Suite, runner: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the words that start a runner of ours, and its files: those that record what tests print if wanted."""
    files = {name: read_sandbox_file(name) for name in (runner, RUNNER)}
    if not suite.detailed:
        return (f"{IN}/{runner}",), files
    return (f"{IN}/{_OUTPUT}", runner.removesuffix(".py")), {**files, _OUTPUT: read_sandbox_file(_OUTPUT)}


def report_options(ids: Sequence[str], variation: Variation) -> tuple[tuple[str, ...], dict[str, str]]:
    """Build our runner's options, which say what to run and where to report, and the files that they name."""
    selection = ("--ids", f"{IN}/{IDS}") if ids else ()
    order = ("--order", variation.order, "--seed", str(variation.seed)) if variation.order else ()
    files = {IDS: "".join(f"{id_}\n" for id_ in ids)} if ids else {}
    return ("--out", f"{OUT}/{JUNIT}", *selection, *order), files


def parse_unittest_arguments(argv: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the named interpreter (empty for the target's) and the words after `-m unittest`; None for other commands.

    Interpreter options, as in `python -W error -m unittest`, also give None.
    """
    if not argv:
        return "", ()
    if tuple(argv[1:3]) != ("-m", "unittest") or not Path(argv[0]).name.startswith("python"):
        return None
    python = "" if argv[0] in ("python", "python3") else argv[0]
    return python, tuple(argv[3:])

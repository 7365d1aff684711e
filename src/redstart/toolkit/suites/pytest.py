"""How pytest is started so that it leaves a report we can read.

Measured with pytest 6.2, 7.4, 8.4 and 9.2:

- Arguments come after `addopts` of the repo's configuration and after `PYTEST_ADDOPTS`, and the last one wins. So a
  `--maxfail=0` of ours undoes `-x`, `--exitfirst` and `--maxfail=N` of the configuration, and `--junitxml`,
  `--junit-prefix`, `--color` and `--tb` of ours replace the repo's.
- `-p no:junitxml` in the configuration cannot be undone: pytest then refuses `-p junitxml`. There is no report then,
  and `runner.read` says so.
- `-p no:cacheprovider` would make `--lf` or `--ff` in the configuration a usage error; an empty `cache_dir` does not,
  and leaves them nothing to choose by.
- With `--color=yes` pytest 8 and later colours the comparison inside the report.
- `--rootdir=.` makes every id begin at the workspace, whichever arguments are given: without it, ids in a folder that
  has a configuration of its own would begin there.
- Verbosity stays the repo's own: with `-vv`, or more of it for assertions, comparing two long texts can take minutes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from redstart.core.run import Suite
from redstart.core.shell import OUT, Environment
from redstart.toolkit.suites.request import JUNIT, Request
from redstart.toolkit.suites.sentinel import PLUGIN, with_sentinel

IDS_LIMIT = 200
IDS_SIZE = 60_000

_FLAG = re.compile(r"-[vqsxl]+|-r\w+|-[nkmcopW].+")
"""Short options that take no value, or hold it in the same word."""

OPTIONS = (
    f"--junitxml={OUT}/{JUNIT}",
    "--junit-prefix=",
    "--override-ini=junit_family=xunit1",
    "--override-ini=junit_logging=no",
    f"--override-ini=cache_dir={OUT}/cache",
    "--rootdir=.",
    "--continue-on-collection-errors",
    "--maxfail=0",
    "--tb=auto",
    "--color=no",
)


def command(
    suite: Suite, environment: Environment, *, ids: Sequence[str] = (), sentinel: Sequence[str] = ()
) -> Request:
    """The request that runs the whole suite, or `ids` and perhaps more, and looks where `sentinel` comes from.

    More than `ids` are run where they are too many for arguments (then their files, or everything) and where the user's
    command is not pytest itself but something that starts it, such as `make test` (then everything): the caller looks
    for its ids in what was run. A command of the user's that is pytest itself keeps its options and loses its paths
    where ids are given.
    """
    chosen = selection(ids)
    words = suite.command or ("python", "-m", "pytest")
    end = _end_of_start(words)
    if end:
        start = with_interpreter(words[:end], environment)
        watched = bool(sentinel) and not _ignores_variables(start)
        plugin = ("-p", PLUGIN) if watched else ()
        asked = _request((*start, *plugin, *_arguments(words[end:], chosen)))
        return with_sentinel(asked, sentinel, environment) if watched else asked
    # An option on the command line still wins over this variable, but then the user asked for it by name.
    added = " ".join(shlex.quote(option) for option in OPTIONS)
    already = environment.variables.get("PYTEST_ADDOPTS", "")
    return _request(suite.command, {"PYTEST_ADDOPTS": f"{already} {added}".strip()})


def selection(ids: Sequence[str]) -> tuple[str, ...]:
    """The arguments that run at least `ids`: themselves, their files where they are many, or none for everything."""
    for chosen in (tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(one.partition("::")[0] for one in ids))):
        if len(chosen) <= IDS_LIMIT and sum(len(one.encode()) + 1 for one in chosen) <= IDS_SIZE:
            return chosen
    return ()


def with_interpreter(start: Sequence[str], environment: Environment) -> tuple[str, ...]:
    """A bare `python` means the target's."""
    if start[0] in ("python", "python3"):
        return (environment.python, *start[1:])
    return tuple(start)


def _request(argv: Sequence[str], variables: dict[str, str] | None = None) -> Request:
    return Request(tuple(argv), variables or {}, {}, (JUNIT,))


def _end_of_start(argv: Sequence[str]) -> int:
    """How many words start pytest (`pytest`, `python -m pytest`, `uv run pytest`); 0 where it is something else."""
    for index, word in enumerate(argv):
        if PurePosixPath(word).name in ("pytest", "py.test") and (index == 0 or argv[index - 1] in ("-m", "run")):
            return index + 1
    return 0


def _ignores_variables(start: Sequence[str]) -> bool:
    """Whether an option of the interpreter (`-I`, `-E`) would hide our plugin, so that pytest would refuse to start."""
    return any(re.fullmatch(r"-[A-Za-z]*[EI][A-Za-z]*", word) for word in start)


def _arguments(given: Sequence[str], chosen: Sequence[str]) -> tuple[str, ...]:
    """The user's arguments with our options; `chosen`, where there are any, in place of the user's paths."""
    end = given.index("--") if "--" in given else len(given)
    options, paths = given[:end], given[end:]
    if not chosen:
        return (*options, *OPTIONS, *paths)
    return (*_without_paths(options), *OPTIONS, *chosen)


def _without_paths(options: Sequence[str]) -> list[str]:
    """Without the words that cannot be an option's value. A path that could be one stays, and more tests are run."""
    kept: list[str] = []
    may_be_value = False
    for word in options:
        if word.startswith("-"):
            kept.append(word)
            may_be_value = "=" not in word and not _FLAG.fullmatch(word)
        elif may_be_value:
            kept.append(word)
            may_be_value = False
    return kept

"""Start pytest so that it leaves a report we can read.

A plugin of ours does most of the work (`inside/redstart_pytest.py`): it overrides configuration of the repo that
prevents running everything, and writes the report (measured with pytest 6.2, 8.4 and 9.2). If it cannot be imported,
arguments do what they can (measured with pytest 6.2, 7.4, 8.4 and 9.2):

- Arguments come after `addopts` of the repo's configuration and after `PYTEST_ADDOPTS`, and the last one wins. So our
  `--maxfail=0` overrides `-x`, `--exitfirst` and `--maxfail=N` of the configuration, and our `--junitxml`,
  `--junit-prefix`, `--color` and `--tb` replace the repo's.
- An argument cannot undo `-p no:junitxml` in the configuration: pytest then refuses `-p junitxml`. Neither can it undo
  `--stepwise` or `--collect-only`. The plugin can.
- `-p no:cacheprovider` would make `--lf` or `--ff` in the configuration a usage error; an empty `cache_dir` does not,
  and leaves them nothing to select by.
- With `--color=yes`, pytest 8 and later color the comparison inside the report.
- `--rootdir=.` makes every ID start at the workspace, whatever the arguments: without it, IDs in a directory with its
  own configuration would start there.
- The repo's verbosity stays: with `-vv`, or with more of it for assertions, comparing two long texts can take minutes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Environment, Variation
from redstart.toolkit.languages.python import bundled_pytest
from redstart.toolkit.languages.python.sentinel import PLUGIN as SENTINEL
from redstart.toolkit.languages.python.sentinel import with_sentinel
from redstart.toolkit.suites.detection.command import around, end_of_start, with_interpreter
from redstart.toolkit.suites.request import JUNIT, PLUGINS, RUNNING, SuiteRequest, importing

IDS_LIMIT = 200
IDS_SIZE = 60_000
IDS = "ids.txt"
PLUGIN = "redstart_pytest"
MOST_REPORTS = 20
REPORTS = (JUNIT, *(f"junit-{number}.xml" for number in range(2, MOST_REPORTS + 1)))
"""The names that the plugin gives to the successive reports of one command."""
CPU_LIMIT = "redstart_cpu.py"

_FLAG = re.compile(r"-[vqsxl]+|-r\w+|-[nkmcopW].+")
"""Short options without a value, or with the value in the same word."""
_TEST_FILE = re.compile(r"\.py(?:::|$)")
_NO_PLUGIN = re.compile(rf'Error importing plugin "(?:{PLUGIN}|{SENTINEL})"')

COMMON = (f"--override-ini=cache_dir={OUT}/cache", "--rootdir=.")
OPTIONS = ("-p", PLUGIN, f"--redstart-report={OUT}", *COMMON)
PLAIN_OPTIONS = (
    f"--junitxml={OUT}/{JUNIT}",
    "--junit-prefix=",
    "--override-ini=junit_family=xunit1",
    "--override-ini=junit_logging=no",
    *COMMON,
    "--continue-on-collection-errors",
    "--maxfail=0",
    "--tb=auto",
    "--color=no",
)
"""The options for runs without the plugin."""


def command(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    vary: Variation = PINNED,
    plain: bool = False,
    test_cpu: int = 0,
) -> SuiteRequest:
    """Build the request that runs the whole suite or at least `ids`, and checks where `sentinel` packages come from.

    If there are too many `ids` for arguments, their files or everything runs. A user's command that is pytest itself
    keeps its options and, if IDs are given, loses its paths. A command that starts pytest, such as `make test`, runs
    unchanged, and pytest skips what is not in `ids`.

    Each test may use `test_cpu` seconds of CPU time, unless that is 0 or another command starts pytest.

    `plain` is for environments that cannot import our plugins (see `has_lost_plugin`): there is then no `sentinel` and
    no order, and a command that starts pytest runs everything.
    """
    words = suite.command or ("python", "-m", "pytest")
    end = end_of_start(words, "pytest", "py.test")
    if not end:
        return _started(suite, environment, ids, sentinel, vary, plain=plain)
    lent, files = bundled_pytest.start(environment)
    start = lent or with_interpreter(words[:end], environment)
    plain = plain or _ignores_variables(start)
    options = _options(vary, sentinel, plain=plain)
    limited = bool(test_cpu) and not plain
    options += (f"--redstart-test-cpu={test_cpu}",) if limited else ()
    argv = (*start, *_arguments(words[end:], selection(ids), options))
    left = (JUNIT, PLUGINS, *((RUNNING,) if limited else ()))
    request = SuiteRequest(argv, vary.variables, files, left)
    return request if plain else _with_plugins(request, sentinel, environment, limited=limited)


def lost_plugin(output: str) -> bool:
    """Whether pytest ended because it could not import a plugin of ours: the command sets Python's path itself."""
    return bool(_NO_PLUGIN.search(output))


def selection(ids: Sequence[str]) -> tuple[str, ...]:
    """Select the arguments that run at least `ids`: the IDs, their files if there are many, or none for everything."""
    for chosen in (tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(id_.partition("::")[0] for id_ in ids))):
        if len(chosen) <= IDS_LIMIT and sum(len(item.encode()) + 1 for item in chosen) <= IDS_SIZE:
            return chosen
    return ()


def named_paths(given: Sequence[str]) -> list[str]:
    """List the files and directories that pytest's arguments name, unless they could be an option's value."""
    end = given.index("--") if "--" in given else len(given)
    left = _without_paths(given[:end])
    named: list[str] = []
    for word in given[:end]:
        if left[:1] == [word]:
            left.pop(0)
        else:
            named.append(word)
    # After an option that may or may not take a value, a test file can still be recognized by its name.
    kept = [word for word in _without_paths(given[:end]) if not word.startswith("-") and _TEST_FILE.search(word)]
    return [word.partition("::")[0] for word in (*named, *kept, *given[end + 1 :])]


def _started(
    suite: Suite,
    environment: Environment,
    ids: Sequence[str],
    sentinel: Sequence[str],
    vary: Variation,
    *,
    plain: bool,
) -> SuiteRequest:
    """Build the request for a command that starts pytest: a variable passes our options; its own options still win."""
    how = around(suite, environment)
    options = _options(vary, sentinel, plain=plain)
    files = dict(how.files_in)
    if ids and not plain:
        files[IDS] = "".join(f"{id_}\n" for id_ in ids)
        options = (*options, f"--redstart-only={IN}/{IDS}")
    already = environment.variables.get("PYTEST_ADDOPTS", "")
    added = " ".join(shlex.quote(option) for option in options)
    variables = {**vary.variables, **how.variables, "PYTEST_ADDOPTS": f"{already} {added}".strip()}
    if not plain:
        variables["REDSTART_ADDOPTS"] = already
    request = SuiteRequest(how.argv, variables, files, (*REPORTS, PLUGINS))
    if plain:
        # The files that tox needs from us are also on the path.
        return importing(request, (), environment) if how.files_in else request
    return _with_plugins(request, sentinel, environment)


def _options(vary: Variation, sentinel: Sequence[str], *, plain: bool) -> tuple[str, ...]:
    if plain:
        return PLAIN_OPTIONS
    return (
        *(("-p", SENTINEL) if sentinel else ()),
        *OPTIONS,
        *((f"--redstart-order={vary.order}",) if vary.order else ()),
        *((f"--redstart-seed={vary.seed}",) if vary.seed else ()),
    )


def _with_plugins(
    request: SuiteRequest, sentinel: Sequence[str], environment: Environment, *, limited: bool = False
) -> SuiteRequest:
    watched = with_sentinel(request, sentinel, environment) if sentinel else request
    return importing(watched, (f"{PLUGIN}.py", *((CPU_LIMIT,) if limited else ())), environment)


def _ignores_variables(start: Sequence[str]) -> bool:
    """Whether an option of the interpreter (`-I`, `-E`) would hide our plugin, so that pytest would refuse to start."""
    return any(re.fullmatch(r"-[A-Za-z]*[EI][A-Za-z]*", word) for word in start)


def _arguments(given: Sequence[str], chosen: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """Merge the user's arguments with our options; `chosen`, if not empty, replaces the user's paths."""
    end = given.index("--") if "--" in given else len(given)
    options, paths = given[:end], given[end:]
    if not chosen:
        return (*options, *ours, *paths)
    return (*_without_paths(options), *ours, *chosen)


def _without_paths(options: Sequence[str]) -> list[str]:
    """Drop the words that cannot be an option's value. A path that could be one stays, so more tests run."""
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

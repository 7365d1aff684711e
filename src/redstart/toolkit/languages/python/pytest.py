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
from redstart.toolkit.suites.detection.command import adapt_command, count_start_words, with_interpreter
from redstart.toolkit.suites.request import JUNIT, PLUGINS, RUNNING, SuiteRequest, add_importable_files

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

COMMON_OPTIONS = (f"--override-ini=cache_dir={OUT}/cache", "--rootdir=.")
OPTIONS = ("-p", PLUGIN, f"--redstart-report={OUT}", *COMMON_OPTIONS)
PLAIN_OPTIONS = (
    f"--junitxml={OUT}/{JUNIT}",
    "--junit-prefix=",
    "--override-ini=junit_family=xunit1",
    "--override-ini=junit_logging=no",
    *COMMON_OPTIONS,
    "--continue-on-collection-errors",
    "--maxfail=0",
    "--tb=auto",
    "--color=no",
)
"""The options for runs without the plugin."""
LONG_COMPARISONS = ("--override-ini=truncation_limit_lines=100", "--override-ini=truncation_limit_chars=6000")
"""Options for longer explanations of failed comparisons, from pytest 8.4 on. Older versions ignore them. Only the text
is longer: pytest compares as much as before."""


def build_pytest_request(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    variation: Variation = PINNED,
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
    command_args = suite.command or ("python", "-m", "pytest")
    end = count_start_words(command_args, "pytest", "py.test")
    if not end:
        return _build_wrapped_request(suite, environment, ids, sentinel, variation, plain=plain)
    lent_start, files = bundled_pytest.start(environment)
    start = lent_start or with_interpreter(command_args[:end], environment)
    plain = plain or _is_isolated_start(start)
    options = _build_options(suite, variation, sentinel, plain=plain)
    is_limited = bool(test_cpu) and not plain
    options += (f"--redstart-test-cpu={test_cpu}",) if is_limited else ()
    argv = (*start, *_merge_arguments(command_args[end:], select_arguments(ids), options))
    output_files = (JUNIT, PLUGINS, *((RUNNING,) if is_limited else ()))
    request = SuiteRequest(argv, variation.variables, files, output_files)
    return request if plain else _with_plugins(request, sentinel, environment, is_limited=is_limited)


def has_lost_plugin(output: str) -> bool:
    """Whether pytest ended because it could not import a plugin of ours: the command sets Python's path itself."""
    return bool(_NO_PLUGIN.search(output))


def select_arguments(ids: Sequence[str]) -> tuple[str, ...]:
    """Select the arguments that run at least `ids`: the IDs, their files if there are many, or none for everything."""
    for selected in (tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(id_.partition("::")[0] for id_ in ids))):
        if len(selected) <= IDS_LIMIT and sum(len(item.encode()) + 1 for item in selected) <= IDS_SIZE:
            return selected
    return ()


def list_named_paths(arguments: Sequence[str]) -> list[str]:
    """List the files and directories that pytest's arguments name, unless they could be an option's value."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    remaining_options = _without_paths(arguments[:end])
    paths: list[str] = []
    for arg in arguments[:end]:
        if remaining_options[:1] == [arg]:
            remaining_options.pop(0)
        else:
            paths.append(arg)
    # After an option that may or may not take a value, a test file can still be recognized by its name.
    test_files = [arg for arg in _without_paths(arguments[:end]) if not arg.startswith("-") and _TEST_FILE.search(arg)]
    return [arg.partition("::")[0] for arg in (*paths, *test_files, *arguments[end + 1 :])]


def _build_wrapped_request(
    suite: Suite,
    environment: Environment,
    ids: Sequence[str],
    sentinel: Sequence[str],
    variation: Variation,
    *,
    plain: bool,
) -> SuiteRequest:
    """Build the request for a command that starts pytest: a variable passes our options; its own options still win."""
    wrapper = adapt_command(suite, environment)
    options = _build_options(suite, variation, sentinel, plain=plain)
    files = dict(wrapper.files_in)
    if ids and not plain:
        files[IDS] = "".join(f"{id_}\n" for id_ in ids)
        options = (*options, f"--redstart-only={IN}/{IDS}")
    existing_options = environment.variables.get("PYTEST_ADDOPTS", "")
    added_options = " ".join(shlex.quote(option) for option in options)
    variables = {
        **variation.variables,
        **wrapper.variables,
        "PYTEST_ADDOPTS": f"{existing_options} {added_options}".strip(),
    }
    if not plain:
        variables["REDSTART_ADDOPTS"] = existing_options
    request = SuiteRequest(wrapper.argv, variables, files, (*REPORTS, PLUGINS))
    if plain:
        # The files that tox needs from us are also on the path.
        return add_importable_files(request, (), environment) if wrapper.files_in else request
    return _with_plugins(request, sentinel, environment)


def _build_options(suite: Suite, variation: Variation, sentinel: Sequence[str], *, plain: bool) -> tuple[str, ...]:
    comparisons = LONG_COMPARISONS if suite.detailed else ()
    if plain:
        return (*PLAIN_OPTIONS, *comparisons)
    return (
        *(("-p", SENTINEL) if sentinel else ()),
        *OPTIONS,
        *comparisons,
        *((f"--redstart-order={variation.order}",) if variation.order else ()),
        *((f"--redstart-seed={variation.seed}",) if variation.seed else ()),
    )


def _with_plugins(
    request: SuiteRequest, sentinel: Sequence[str], environment: Environment, *, is_limited: bool = False
) -> SuiteRequest:
    extended_request = with_sentinel(request, sentinel, environment) if sentinel else request
    return add_importable_files(extended_request, (f"{PLUGIN}.py", *((CPU_LIMIT,) if is_limited else ())), environment)


def _is_isolated_start(start: Sequence[str]) -> bool:
    """Whether an option of the interpreter (`-I`, `-E`) would hide our plugin, so that pytest would refuse to start."""
    return any(re.fullmatch(r"-[A-Za-z]*[EI][A-Za-z]*", arg) for arg in start)


def _merge_arguments(
    user_arguments: Sequence[str], selected: Sequence[str], own_options: Sequence[str]
) -> tuple[str, ...]:
    """Merge the user's arguments with our options; `selected`, if not empty, replaces the user's paths."""
    end = user_arguments.index("--") if "--" in user_arguments else len(user_arguments)
    options, paths = user_arguments[:end], user_arguments[end:]
    if not selected:
        return (*options, *own_options, *paths)
    return (*_without_paths(options), *own_options, *selected)


def _without_paths(options: Sequence[str]) -> list[str]:
    """Drop the words that cannot be an option's value. A path that could be one stays, so more tests run."""
    kept_arguments: list[str] = []
    may_be_value = False
    for arg in options:
        if arg.startswith("-"):
            kept_arguments.append(arg)
            may_be_value = "=" not in arg and not _FLAG.fullmatch(arg)
        elif may_be_value:
            kept_arguments.append(arg)
            may_be_value = False
    return kept_arguments

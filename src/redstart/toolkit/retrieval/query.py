"""Build the search query from the failing tests."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.retrieval.code_reader import CodePlace
from redstart.toolkit.retrieval.sources import Sources

MAX_WORDS = 40

_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_IDLE = frozenset(
    """
    self cls args kwargs name value data result expected actual path text key
    pytest unittest mock raises mark parametrize fixture monkeypatch tmp_path capsys
    assertEqual assertTrue assertFalse assertRaises assertIn TestCase setUp tearDown
    append join split get items keys values update strip startswith endswith
    the this that where should when has object attribute are was
    """.split()  # noqa: SIM905  a list of sixty strings is no easier to read
).union(dir(builtins), keyword.kwlist, keyword.softkwlist)
"""Words that nearly every test and every message contains."""


class RetrievalQuery(NamedTuple):
    identifiers: list[str]
    """Identifiers to look for, the most informative first."""
    imports: list[str]
    """Files that the failing tests import from."""
    tests: list[CodePlace]
    """The failing test functions, in the order of the cases."""
    helpers: list[CodePlace]
    """What they use from their own files."""


def ask(cases: Sequence[Case], goal: str, tests: Sequence[str], sources: Sources) -> RetrievalQuery:
    """Read the failing tests: what they call, import and report is what to search for."""
    mentioned: dict[str, None] = {}
    used: dict[str, None] = {}
    imports: dict[str, None] = {}
    places: dict[CodePlace, None] = {}
    helpers: dict[CodePlace, None] = {}
    for case in cases:
        mentioned |= dict.fromkeys(_IDENTIFIER.findall(case.message))
        path, names = locate(case.id, tests)
        test = sources.get_reader(path).read_test(path, names)
        if test is not None:
            places[test.place] = None
            helpers |= dict.fromkeys(test.helpers)
            imports |= dict.fromkeys(test.imports)
            used |= dict.fromkeys(test.names)
        elif sources.read_lines(path):
            places[CodePlace(path, 1, len(sources.read_lines(path)))] = None
    candidates = {**mentioned, **used, **dict.fromkeys(_IDENTIFIER.findall(goal))}
    words = [word for word in candidates if len(word) > 2 and word not in _IDLE and not word.startswith("__")]
    other_helpers = [place for place in helpers if place not in places]
    return RetrievalQuery(words[:MAX_WORDS], list(imports), list(places), other_helpers)


def locate(test_id: str, tests: Sequence[str]) -> tuple[str, list[str]]:
    """Return the file of a test ID and the names inside it: `a/test_b.py::C::test_d[1]` or `a.test_b.C.test_d`."""
    base_id = test_id.partition("[")[0]
    path = base_id.partition("::")[0]
    language = find_file_language(path)
    if language is not None and language.reads_code:
        return path, language.list_test_names(test_id)
    dotted_id = base_id.replace("::", ".")
    for test_path in sorted(tests, key=lambda test: (-len(test), test)):
        module = _without_suffix(test_path).replace("/", ".")
        while module:
            if dotted_id == module or dotted_id.startswith(module + "."):
                return test_path, [name for name in dotted_id[len(module) + 1 :].split(".") if name]
            module = module.partition(".")[2]
    return "", []


def _without_suffix(path: str) -> str:
    language = find_file_language(path)
    return path.removesuffix(language.module_suffix) if language else path

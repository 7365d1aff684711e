"""What a test was given: the parameters in its id, or what its title quotes. It is the test's choice, not the bug's."""

from __future__ import annotations

import re
from typing import NamedTuple

_SCRIPT = re.compile(r"^[^:>]*\.[cm]?[jt]sx?(?=::| > |$)")
_QUOTES = re.compile(r"(?<!\w)(?:'([^']*)'|\"([^\"]*)\"|`([^`]*)`)(?!\w)")
_LITERAL = re.compile(r"(?<![\w.])-?\d[\w.]*|'[^']*'|\"[^\"]*\"")
_MOST_LITERALS = 40
_NAMED_BY_PLACE = re.compile(r"(?:^|-)[A-Za-z_]\w*?\d+(?=-|$)")
"""pytest calls a parameter that is no plain value `name0`, `name1`."""
_VALUE = re.compile(
    r"(?<!\w)(?:'(?P<single>[^']+)'|\"(?P<double>[^\"]+)\"|`(?P<back>[^`]+)`)(?!\w)|(?<=: )(?P<last>[^:'\"]+)$"
)
"""Where a message shows what it was given: in quotes, or at its end."""


class CaseId(NamedTuple):
    """What the id of a test tells."""

    file: str
    name: str
    """The id without parameters."""
    given: str
    """All values, as text."""
    script: bool
    """Whether it is one of Node.js."""


def read_id(id_: str) -> CaseId:
    name, _, parameters = id_.partition("[")
    script = _SCRIPT.match(id_)
    if script is None:
        return CaseId(id_.partition("::")[0], name, parameters.removesuffix("]"), script=False)
    quoted = ("".join(one) for one in _QUOTES.findall(id_[script.end() :]))
    return CaseId(script[0], name, "\n".join(quoted), script=True)


def shows(said: str, wanted: str) -> bool:
    """Whether a value that is said is one of those in `wanted`."""
    shown = dict.fromkeys(literal.strip("'\"") for literal in _LITERAL.findall(said))
    telling = [re.escape(one) for one in shown if one][:_MOST_LITERALS]
    return bool(telling) and re.search(rf"(?<![\w.])(?:{'|'.join(telling)})(?![\w.])", wanted) is not None


def decides(test: CaseId, said: str, asked: str) -> bool:
    """Whether what an assertion compared comes from the test's parameters: each then has other values for one bug."""
    if test.script or not test.given:
        return False
    return shows(said, test.given) or (_NAMED_BY_PLACE.search(test.given) is not None and not shows(said, asked))


def taken_out(said: str, given: str) -> str:
    """A message with each value that the test was given replaced by a mark."""

    def mark(found: re.Match[str]) -> str:
        known = re.search(rf"(?<!\w){re.escape(found[found.lastindex or 0])}(?!\w)", given)
        return "<given>" if known else found[0]

    return _VALUE.sub(mark, said) if given else said

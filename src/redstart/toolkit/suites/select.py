"""Selects tests by ID, file, directory or class, and by an expression like pytest's `-k`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from redstart.core.errors import ConfigError
from redstart.toolkit.languages.registry import dotted_module

Chooses = Callable[[str], bool]

_TOKEN = re.compile(r"\s*(?P<mark>[()])|\s*(?P<word>[\w:+\-.\[\]\\/]+)|\s*(?P<other>\S)")
_PARTS = re.compile(r"::| > |[/.\[\]]")


def chooser(targets: Sequence[str], keyword: str) -> Chooses:
    """Build a predicate that tells whether a test ID is selected. With neither argument, every test is.

    Raises `ConfigError` if the expression cannot be parsed.
    """
    chosen = parse_keyword(keyword) if keyword.strip() else None
    wanted = [target.removeprefix("./").rstrip("/") for target in targets]

    def chooses(id_: str) -> bool:
        named = not wanted or any(_within(id_, target) for target in wanted)
        return named and (chosen is None or chosen(id_))

    return chooses


def parse_keyword(expression: str) -> Chooses:
    """Parse words joined by `and`, `or`, `not` and parentheses. A word matches anywhere in a test ID, ignoring case.

    Unlike pytest's `-k`, it knows no markers, because it selects among results, which have none. Raises `ConfigError`.
    """
    tokens = [found.group().strip() for found in _TOKEN.finditer(expression)]
    parser = _Parser(tokens, expression)
    chosen = parser.either()
    if parser.left:
        raise parser.fault(f"unexpected {parser.left[0]!r}")
    return chosen


class _Parser:
    """Recursive descent, with one method for each precedence level."""

    def __init__(self, tokens: list[str], expression: str) -> None:
        self.left = tokens
        self._expression = expression

    def fault(self, why: str) -> ConfigError:
        return ConfigError(f"-k {self._expression!r}: {why}", remedy="join words with and, or, not and parentheses")

    def either(self) -> Chooses:
        first = self._both()
        while self._take("or"):
            first = _any(first, self._both())
        return first

    def _both(self) -> Chooses:
        first = self._one()
        while self._take("and"):
            first = _all(first, self._one())
        return first

    def _one(self) -> Chooses:
        if self._take("not"):
            negated = self._one()
            return lambda id_: not negated(id_)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise self.fault("a parenthesis is not closed")
            return inner
        if not self.left or not re.match(r"[\w:+\-.\[\]\\/]", self.left[0]) or self.left[0] in ("and", "or"):
            raise self.fault(f"expected a word {f'before {self.left[0]!r}' if self.left else 'at the end'}")
        word = self.left.pop(0).casefold()
        return lambda id_: word in id_.casefold()

    def _take(self, token: str) -> bool:
        if self.left[:1] != [token]:
            return False
        self.left.pop(0)
        return True


def _any(one: Chooses, other: Chooses) -> Chooses:
    return lambda id_: one(id_) or other(id_)


def _all(one: Chooses, other: Chooses) -> Chooses:
    return lambda id_: one(id_) and other(id_)


def _within(id_: str, target: str) -> bool:
    """Whether the ID is the target or lies in it: in its directory, file, module, class, or one set of parameters."""
    if target in ("", "."):
        return True
    if not id_.startswith(target):
        # The user may name a file as a path that the runner names as a module.
        module = "" if "::" in id_ else dotted_module(target)
        return bool(module) and _within(id_, module)
    rest = id_[len(target) :]
    return not rest or _PARTS.match(rest) is not None

"""Select tests by ID, file, directory or class, and by an expression like pytest's `-k`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from redstart.core.errors import ConfigError
from redstart.toolkit.languages.registry import get_dotted_module

Chooses = Callable[[str], bool]

_TOKEN = re.compile(r"\s*(?P<mark>[()])|\s*(?P<word>[\w:+\-.\[\]\\/]+)|\s*(?P<other>\S)")
_PARTS = re.compile(r"::| > |[/.\[\]]")


def build_selector(targets: Sequence[str], keyword: str) -> Chooses:
    """Build a predicate that tells whether a test ID is selected. With neither argument, every test is.

    Raises `ConfigError` if the expression cannot be parsed.
    """
    matches_keyword = parse_keyword(keyword) if keyword.strip() else None
    target_paths = [target.removeprefix("./").rstrip("/") for target in targets]

    def is_selected(id_: str) -> bool:
        is_named = not target_paths or any(_is_within(id_, target) for target in target_paths)
        return is_named and (matches_keyword is None or matches_keyword(id_))

    return is_selected


def parse_keyword(expression: str) -> Chooses:
    """Parse words joined by `and`, `or`, `not` and parentheses. A word matches anywhere in a test ID, ignoring case.

    Unlike pytest's `-k`, it knows no markers, because it selects among results, which have none. Raises `ConfigError`.
    """
    tokens = [match.group().strip() for match in _TOKEN.finditer(expression)]
    parser = _Parser(tokens, expression)
    predicate = parser.parse_or()
    if parser.tokens:
        raise parser.create_error(f"unexpected {parser.tokens[0]!r}")
    return predicate


class _Parser:
    """Recursive descent, with one method for each precedence level."""

    def __init__(self, tokens: list[str], expression: str) -> None:
        self.tokens = tokens
        self._expression = expression

    def create_error(self, reason: str) -> ConfigError:
        return ConfigError(f"-k {self._expression!r}: {reason}", remedy="join words with and, or, not and parentheses")

    def parse_or(self) -> Chooses:
        predicate = self._parse_and()
        while self._take("or"):
            predicate = _match_any(predicate, self._parse_and())
        return predicate

    def _parse_and(self) -> Chooses:
        predicate = self._parse_operand()
        while self._take("and"):
            predicate = _match_all(predicate, self._parse_operand())
        return predicate

    def _parse_operand(self) -> Chooses:
        if self._take("not"):
            negated = self._parse_operand()
            return lambda id_: not negated(id_)
        if self._take("("):
            predicate = self.parse_or()
            if not self._take(")"):
                raise self.create_error("a parenthesis is not closed")
            return predicate
        if not self.tokens or not re.match(r"[\w:+\-.\[\]\\/]", self.tokens[0]) or self.tokens[0] in ("and", "or"):
            raise self.create_error(f"expected a word {f'before {self.tokens[0]!r}' if self.tokens else 'at the end'}")
        word = self.tokens.pop(0).casefold()
        return lambda id_: word in id_.casefold()

    def _take(self, token: str) -> bool:
        if self.tokens[:1] != [token]:
            return False
        self.tokens.pop(0)
        return True


def _match_any(left: Chooses, right: Chooses) -> Chooses:
    return lambda id_: left(id_) or right(id_)


def _match_all(left: Chooses, right: Chooses) -> Chooses:
    return lambda id_: left(id_) and right(id_)


def _is_within(id_: str, target: str) -> bool:
    """Whether the ID is the target or lies in it: in its directory, file, module, class, or one set of parameters."""
    if target in ("", "."):
        return True
    if not id_.startswith(target):
        # The user may name a file as a path that the runner names as a module.
        module = "" if "::" in id_ else get_dotted_module(target)
        return bool(module) and _is_within(id_, module)
    rest = id_[len(target) :]
    return not rest or _PARTS.match(rest) is not None

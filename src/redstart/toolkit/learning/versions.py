"""What Python and V8 say in one version and said in another, or of one value and of another: one wording for both."""

from __future__ import annotations

import re

_HINT = re.compile(
    r"(?:\.|,)? (?:Did you mean|Or did you forget|Did you forget|Perhaps you forgot|Maybe you meant)\b.*$"
    r"| \(consider renaming .*$"
)
_CALLED = re.compile(r"\b(?:\w+\.)+(?:<locals>\.)?(?=\w+\(\) (?:missing|takes|got|argument after) )")
_TYPES = {"re.error": "re.PatternError"}
"""By the name before it was changed."""

_BAD_JSON = "bad JSON"
_PYTHON = (
    (r"^maximum recursion depth exceeded.*$", "maximum recursion depth exceeded"),
    (r"^local variable ('\w+') referenced before assignment$", r"local \1 has no value"),
    (r"^cannot access local variable ('\w+') where it is not associated with a value$", r"local \1 has no value"),
    (r"^free variable ('\w+') referenced before assignment in enclosing scope$", r"free \1 has no value"),
    (
        r"^cannot access free variable ('\w+') where it is not associated with a value in enclosing scope$",
        r"free \1 has no value",
    ),
    (r"^property ('\w+') of '.*' object has no (?:setter|deleter)$", r"cannot change \1"),
    (r"^can't (?:set|delete) attribute(?: ('\w+'))?$", r"cannot change \1"),
    (r"^property ('\w+') of '.*' object has no getter$", r"cannot read \1"),
    (r"^unreadable attribute(?: ('\w+'))?$", r"cannot read \1"),
    (r"^cannot use '\w+' as a .* \((unhashable type: '\w+')\)$", r"\1"),
    (r"^(expected string or bytes-like object)(?:, got '\w+')?$", r"\1"),
    (r"^(string indices must be integers)(?:, not '\w+')?$", r"\1"),
    (r"^too many values to unpack \(expected (\d+)(?:, got \d+)?\)$", r"too many values to unpack (expected \1)"),
    (r"^(Can't instantiate abstract class \w+) with(?:out an implementation for)? abstract methods? ", r"\1: "),
    (r"\bDID NOT RAISE <class '(?:[\w.]+\.)?(\w+)'>", r"DID NOT RAISE \1"),
    (r"^partially initialized module ('[\w.]+')(?: from '[^']*')? has no", r"module \1 has no"),
    (r"^(cannot import name '\w+' from )(?:partially initialized module )?('[\w.]+').*$", r"\1\2"),
    (
        r"^(?:Illegal trailing comma before end of \w+|Expecting property name enclosed in double quotes):",
        f"{_BAD_JSON}:",
    ),
    (r"\ba (?:real )?number\b", "a number"),
    (r"^descriptor '(\w+)' of '(\w+)' object needs an argument$", r"unbound method \2.\1() needs an argument"),
    (r"^super\(type, obj\): obj .*$", "super(type, obj): obj is of another type"),
    (r"^(non-default argument '\w+' follows default argument)(?: '\w+')?$", r"\1"),
    (r"^object (\w+) can't be used in 'await' expression$", r"'\1' object can't be awaited"),
    (r"^(argument of type '\w+' is not) (?:iterable|a container or iterable)$", r"\1 iterable"),
    (r"^(\w+ must be in \d+\.\.\d+)(?:, not -?\d+)?$", r"\1"),
    (r"^day (?:is out of range for month|-?\d+ must be in range .*)$", "day is out of range for month"),
    (r"^(?:[a-z]+ )*(?:division|modulo)(?: or modulo)? by zero$", "division by zero"),
    (r"^0\.0 cannot be raised to a negative power$", "zero to a negative power"),
    (r"^expected a (?:\w+ )*input, got .*$", "math domain error"),
    (r"^('\S+' codec can't (?:de|en)code) \w+ .* position \S+: ", r"\1: "),
)
_V8 = (
    (r"^Maximum call stack size exceeded.*$", "maximum recursion depth exceeded"),
    (r"^Cannot read property ('[^']*') of (\w+)$", r"Cannot read properties of \2 (reading \1)"),
    (r"^Cannot set property ('[^']*') of (\w+)$", r"Cannot set properties of \2 (setting \1)"),
    (
        r"^(?:.* in JSON at position \d+.*|Unexpected token .* is not valid JSON|Unexpected end of JSON input)$",
        "bad JSON",
    ),
)
_SAID = tuple((re.compile(pattern), said) for pattern, said in (*_PYTHON, *_V8))
_UNNAMED = re.compile(r"^can't (?:set|delete) attribute$")
_CHANGED = re.compile(r"\.(\w+)(?:\s*[-+*/|&]?=(?!=)|\s*$)")
_LISTED = re.compile(r"^(?P<head>Can't instantiate abstract class \w+: |.*\(choose from )(?P<names>.*)$")
"""What newer versions quote, or older ones."""


def told_in_full(text: str, line: str) -> str:
    """With the attribute that Python did not name before 3.10, from the `line` of code that it was at."""
    changed = _CHANGED.search(line) if _UNNAMED.match(text) else None
    return f"{text} '{changed[1]}'" if changed else text


def one_wording(text: str) -> str:
    """One line as any version might say it, without what newer ones propose."""
    text = _HINT.sub("", text)
    for pattern, said in _SAID:
        text = pattern.sub(said, text)
    text = _LISTED.sub(lambda found: found["head"] + found["names"].replace("'", ""), text)
    return _CALLED.sub("", text)


def one_type(name: str) -> str:
    """The name that an exception has in the newest version."""
    return _TYPES.get(name, name)

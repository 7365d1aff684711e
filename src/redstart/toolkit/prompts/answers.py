"""Reads a model's answer into the requested type, or explains exactly why that is impossible.

A wrong reading is worse than none. An answer that may mean two things, or whose missing end may matter, is rejected,
and the model is asked again with the reason.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from redstart.core.noun import clip
from redstart.toolkit.prompts.loose import BrokenObject, LooseObject, objects
from redstart.toolkit.prompts.shaping import bend, spelt, strangers, unwrap

Shape = TypeVar("Shape", bound=BaseModel)
Value = TypeVar("Value")

LONGEST = 100_000
"""The maximum length of an answer in characters."""
ERROR = 400
"""How many bytes of an error go back to the model."""

_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_UNENDED_THOUGHT = re.compile(r"\A\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_BARE_FIELDS = re.compile(r"""\A\s*(?:```\w*\s+)?["'“]\w+["'”]\s*:""")
_PLACEHOLDER = re.compile(r"\W*(?:\.\.\.|…)\W*|<[\w \-/]+>")
_PLACE = 60
"""The longest placeholder, in characters."""
_QUOTED = re.compile(r'"([^"\n]+)"')


class ParsedAnswer(NamedTuple, Generic[Value]):
    """The value of an answer, or None and the reason in words that can go back to the model."""

    value: Value | None
    error: str = ""


def schema(shape: type[BaseModel]) -> dict[str, object]:
    """Build the JSON schema of an answer for `Ask.shape`, without titles, which only repeat the names."""
    return cast("dict[str, object]", _untitled(shape.model_json_schema()))


def read_json(text: str, shape: type[Shape]) -> Shape | None:
    """Return the value that `read_answer` finds. None, without the reason, if it finds nothing."""
    return read_answer(text, shape).value


def read_answer(text: str, shape: type[Shape], *, asked: str = "", truncated: bool = False) -> ParsedAnswer[Shape]:
    """Read the one object of `shape` in `text`, despite prose, fences and the usual mistakes. Never raises.

    `question` is the question's text: a mere copy of its example is not an answer. `truncated` means that the model
    reached its token limit. If the text ends too early, everything that is missing must be optional.
    """
    if len(text) > LONGEST:
        return ParsedAnswer(None, f"the answer is longer than {LONGEST} characters")
    examples = frozenset(_QUOTED.findall(asked)) - shape.model_fields.keys()
    reading: ParsedAnswer[Shape] = ParsedAnswer(None, "the answer holds no JSON object")
    for variant in _variants(text):
        found = list(objects(variant, truncated=truncated))
        judged = _judge(found, shape, examples)
        if judged.value is not None or judged.error:
            return judged
        if not any(isinstance(item, LooseObject) for item in found):
            continue
        names = ", ".join(shape.model_fields)
        reading = ParsedAnswer(None, f"the answer holds JSON, but none with the fields that were asked for: {names}")
    return reading


class _Candidate(NamedTuple, Generic[Value]):
    value: dict[str, object]
    made: Value | None
    error: str
    copied: bool
    cut: bool


def _judge(
    found: list[LooseObject | BrokenObject], shape: type[Shape], examples: frozenset[str]
) -> ParsedAnswer[Shape]:
    """Choose the intended object of a text. No value and no reason if none has a field of `shape`."""
    candidates: list[_Candidate[Shape]] = []
    for item in found:
        if isinstance(item, BrokenObject):
            if spelt(item.first_key) in shape.model_fields:
                return ParsedAnswer(None, _short(item.reason))
            continue
        inner = unwrap(item.value, shape)
        if inner is not None:
            candidates.append(_candidate(inner, item, shape, examples))
    own = [candidate for candidate in candidates if not candidate.copied]
    real = own or [candidate for candidate in candidates if candidate.made is not None] or candidates
    if not real:
        return ParsedAnswer(None)
    made = [item for item in real if item.made is not None]
    if not made:
        return ParsedAnswer(None, max(real, key=lambda item: len(item.value)).error)
    best = max(made, key=lambda item: (not item.cut, len(item.value)))
    if any(not _agrees(item, best) for item in real):
        return ParsedAnswer(None, f"the answer holds {len(real)} JSON objects that differ: give one")
    return ParsedAnswer(best.made)


def _candidate(
    value: dict[str, object], found: LooseObject, shape: type[Shape], examples: frozenset[str]
) -> _Candidate[Shape]:
    kept = cast("dict[str, object]", _without(value, examples))
    copied = found.elided or kept != value
    if unknown := strangers(kept, shape):
        error = f"{', '.join(unknown[:3])}: no such field; the fields are {', '.join(shape.model_fields)}"
        return _Candidate(value, None, error, copied, found.cut)
    try:
        if kept:
            return _Candidate(
                value, shape.model_validate(bend(kept, shape, whole=not found.cut)), "", copied, found.cut
            )
        said = "the answer says nothing"
    except ValidationError as error:
        said = _problems(error)
    if copied:
        said += " (what stands there is copied from the question, or left out)"
    elif found.cut:
        said += " (the answer ends too early: keep it short enough to be complete)"
    return _Candidate(value, None, said, copied, found.cut)


def _agrees(one: _Candidate[Shape], best: _Candidate[Shape]) -> bool:
    """Whether the candidate says the same as `best`, or a part of it, like the start of a repeated answer."""
    if one.made is not None and not one.cut:
        return one.made == best.made
    return all(best.value.get(key) == value for key, value in list(one.value.items())[: -1 if one.cut else None])


def _without(value: object, examples: frozenset[str]) -> object:
    """Drop texts that are copied from the question's example or are placeholders."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {key: _without(pair, examples) for key, pair in pairs if not _is_example(pair, examples)}
    if isinstance(value, list):
        return [_without(item, examples) for item in cast("list[object]", value) if not _is_example(item, examples)]
    return value


def _is_example(value: object, examples: frozenset[str]) -> bool:
    if not isinstance(value, str):
        return False
    said = value.strip()
    return said in examples or (len(said) <= _PLACE and _PLACEHOLDER.fullmatch(said) is not None)


def _variants(text: str) -> Iterator[str]:
    """Yield the answer without the model's thinking, and then unescaped in the ways it may have been escaped."""
    plain = _THOUGHT.sub("", text.replace("\r\n", "\n").lstrip("\ufeff"))
    if _UNENDED_THOUGHT.match(plain):
        return
    ended = list(_END_OF_THOUGHT.finditer(plain))
    if ended and "{" in plain[ended[-1].end() :] and "<think" not in plain.casefold():
        plain = plain[ended[-1].end() :]
    if _BARE_FIELDS.match(plain):
        yield _in_braces(plain)
    elif not plain.startswith("{\\", plain.find("{")):
        yield plain
    if '\\"' in plain:
        yield from _unescaped(plain)
    if "&quot;" in plain:
        yield html.unescape(plain)


def _in_braces(text: str) -> str:
    inside = re.sub(r"\A\s*```\w*\s+|\s*```\s*\Z", "", text).strip()
    return "{" + inside.rstrip(",") + ("" if inside.endswith("}") and inside.count("{") < inside.count("}") else "}")


def _unescaped(text: str) -> Iterator[str]:
    """Unescape JSON that was written as a JSON string, or escaped like one."""
    plain = re.sub(r"\A\s*```\w*\s+|\s*```\s*\Z", "", text).strip()
    for quoted in (plain, f'"{plain}"'):
        try:
            decoded = json.loads(quoted, strict=False)
        except ValueError:
            continue
        if isinstance(decoded, str):
            yield decoded
            return


def _problems(error: ValidationError) -> str:
    """Describe what pydantic found, one short clause for each field."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}" for item in found[:4]]
    return _short("; ".join(told))


def _short(text: str) -> str:
    return clip(text, ERROR)


def _untitled(value: object) -> object:
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {key: _untitled(pair) for key, pair in pairs if not (key == "title" and isinstance(pair, str))}
    if isinstance(value, list):
        return [_untitled(item) for item in cast("list[object]", value)]
    return value

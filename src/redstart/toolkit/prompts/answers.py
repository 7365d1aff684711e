"""Read a model's answer into the requested type, or explain exactly why that is impossible.

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

from redstart.core.frozen import clip
from redstart.toolkit.prompts.coercion import coerce_fields, find_unknown_fields, normalize_name, unwrap
from redstart.toolkit.prompts.tolerant_json import BrokenObject, LooseObject, find_objects

Shape = TypeVar("Shape", bound=BaseModel)
Value = TypeVar("Value")

LONGEST = 100_000
"""The maximum length of an answer in characters."""
ERROR = 400
"""How many bytes of an error go back to the model."""

_THINKING_BLOCK = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_UNENDED_THOUGHT = re.compile(r"\A\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THINKING_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_BARE_FIELDS = re.compile(r"""\A\s*(?:```\w*\s+)?["'“]\w+["'”]\s*:""")
_PLACEHOLDER = re.compile(r"\W*(?:\.\.\.|…)\W*|<[\w \-/]+>")
_PLACE = 60
"""The longest placeholder, in characters."""
_QUOTED_TEXT = re.compile(r'"([^"\n]+)"')


class ParsedAnswer(NamedTuple, Generic[Value]):
    """The value of an answer, or None and the reason in words that can go back to the model."""

    value: Value | None
    error: str = ""


def build_schema(shape: type[BaseModel]) -> dict[str, object]:
    """Build the JSON schema of an answer for `Ask.shape`, without titles, which only repeat the names."""
    return cast("dict[str, object]", _remove_titles(shape.model_json_schema()))


def read_json(text: str, shape: type[Shape]) -> Shape | None:
    """Return the value that `read_answer` finds. None, without the reason, if it finds nothing."""
    return read_answer(text, shape).value


def read_answer(text: str, shape: type[Shape], *, question: str = "", truncated: bool = False) -> ParsedAnswer[Shape]:
    """Read the one object of `shape` in `text`, despite prose, fences and the usual mistakes. Never raises.

    `question` is the question's text: a mere copy of its example is not an answer. `truncated` means that the model
    reached its token limit. If the text ends too early, everything that is missing must be optional.
    """
    if len(text) > LONGEST:
        return ParsedAnswer(None, f"the answer is longer than {LONGEST} characters")
    examples = frozenset(_QUOTED_TEXT.findall(question)) - shape.model_fields.keys()
    reading: ParsedAnswer[Shape] = ParsedAnswer(None, "the answer holds no JSON object")
    for variant in _iterate_variants(text):
        items = list(find_objects(variant, truncated=truncated))
        judgment = _judge(items, shape, examples)
        if judgment.value is not None or judgment.error:
            return judgment
        if not any(isinstance(item, LooseObject) for item in items):
            continue
        names = ", ".join(shape.model_fields)
        reading = ParsedAnswer(None, f"the answer holds JSON, but none with the fields that were asked for: {names}")
    return reading


class _Candidate(NamedTuple, Generic[Value]):
    value: dict[str, object]
    parsed: Value | None
    error: str
    copied: bool
    is_truncated: bool


def _judge(
    items: list[LooseObject | BrokenObject], shape: type[Shape], examples: frozenset[str]
) -> ParsedAnswer[Shape]:
    """Choose the intended object of a text. No value and no reason if none has a field of `shape`."""
    candidates: list[_Candidate[Shape]] = []
    for item in items:
        if isinstance(item, BrokenObject):
            if normalize_name(item.first_key) in shape.model_fields:
                return ParsedAnswer(None, _clip_error(item.reason))
            continue
        fields = unwrap(item.value, shape)
        if fields is not None:
            candidates.append(_create_candidate(fields, item, shape, examples))
    originals = [candidate for candidate in candidates if not candidate.copied]
    relevant = originals or [candidate for candidate in candidates if candidate.parsed is not None] or candidates
    if not relevant:
        return ParsedAnswer(None)
    valid = [item for item in relevant if item.parsed is not None]
    if not valid:
        return ParsedAnswer(None, max(relevant, key=lambda item: len(item.value)).error)
    best = max(valid, key=lambda item: (not item.is_truncated, len(item.value)))
    if any(not _is_consistent(item, best) for item in relevant):
        return ParsedAnswer(None, f"the answer holds {len(relevant)} JSON objects that differ: give one")
    return ParsedAnswer(best.parsed)


def _create_candidate(
    value: dict[str, object], item: LooseObject, shape: type[Shape], examples: frozenset[str]
) -> _Candidate[Shape]:
    remaining = cast("dict[str, object]", _drop_examples(value, examples))
    copied = item.elided or remaining != value
    if unknown := find_unknown_fields(remaining, shape):
        error = f"{', '.join(unknown[:3])}: no such field; the fields are {', '.join(shape.model_fields)}"
        return _Candidate(value, None, error, copied, item.is_truncated)
    try:
        if remaining:
            return _Candidate(
                value,
                shape.model_validate(coerce_fields(remaining, shape, is_complete=not item.is_truncated)),
                "",
                copied,
                item.is_truncated,
            )
        problem = "the answer says nothing"
    except ValidationError as error:
        problem = _describe_errors(error)
    if copied:
        problem += " (what stands there is copied from the question, or left out)"
    elif item.is_truncated:
        problem += " (the answer ends too early: keep it short enough to be complete)"
    return _Candidate(value, None, problem, copied, item.is_truncated)


def _is_consistent(candidate: _Candidate[Shape], best: _Candidate[Shape]) -> bool:
    """Whether the candidate says the same as `best`, or a part of it, like the start of a repeated answer."""
    if candidate.parsed is not None and not candidate.is_truncated:
        return candidate.parsed == best.parsed
    return all(
        best.value.get(key) == value
        for key, value in list(candidate.value.items())[: -1 if candidate.is_truncated else None]
    )


def _drop_examples(value: object, examples: frozenset[str]) -> object:
    """Drop texts that are copied from the question's example or are placeholders."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {key: _drop_examples(pair, examples) for key, pair in pairs if not _is_example(pair, examples)}
    if isinstance(value, list):
        return [
            _drop_examples(item, examples) for item in cast("list[object]", value) if not _is_example(item, examples)
        ]
    return value


def _is_example(value: object, examples: frozenset[str]) -> bool:
    if not isinstance(value, str):
        return False
    text = value.strip()
    return text in examples or (len(text) <= _PLACE and _PLACEHOLDER.fullmatch(text) is not None)


def _iterate_variants(text: str) -> Iterator[str]:
    """Yield the answer without the model's thinking, and then unescaped in the ways it may have been escaped."""
    answer = _THINKING_BLOCK.sub("", text.replace("\r\n", "\n").lstrip("\ufeff"))
    if _UNENDED_THOUGHT.match(answer):
        return
    endings = list(_THINKING_END.finditer(answer))
    if endings and "{" in answer[endings[-1].end() :] and "<think" not in answer.casefold():
        answer = answer[endings[-1].end() :]
    if _BARE_FIELDS.match(answer):
        yield _in_braces(answer)
    elif not answer.startswith("{\\", answer.find("{")):
        yield answer
    if '\\"' in answer:
        yield from _unescape(answer)
    if "&quot;" in answer:
        yield html.unescape(answer)


def _in_braces(text: str) -> str:
    inside = re.sub(r"\A\s*```\w*\s+|\s*```\s*\Z", "", text).strip()
    return "{" + inside.rstrip(",") + ("" if inside.endswith("}") and inside.count("{") < inside.count("}") else "}")


def _unescape(text: str) -> Iterator[str]:
    """Unescape JSON that was written as a JSON string, or escaped like one."""
    stripped = re.sub(r"\A\s*```\w*\s+|\s*```\s*\Z", "", text).strip()
    for quoted in (stripped, f'"{stripped}"'):
        try:
            decoded = json.loads(quoted, strict=False)
        except ValueError:
            continue
        if isinstance(decoded, str):
            yield decoded
            return


def _describe_errors(error: ValidationError) -> str:
    """Describe what pydantic found, one short clause for each field."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    clauses = [f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}" for item in errors[:4]]
    return _clip_error("; ".join(clauses))


def _clip_error(text: str) -> str:
    return clip(text, ERROR)


def _remove_titles(value: object) -> object:
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {key: _remove_titles(pair) for key, pair in pairs if not (key == "title" and isinstance(pair, str))}
    if isinstance(value, list):
        return [_remove_titles(item) for item in cast("list[object]", value)]
    return value

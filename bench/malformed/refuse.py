"""Kinds of damage after which nobody can tell what the answer was: whatever is read from it would be made up."""

from __future__ import annotations

import json
import re

from malformed.bases import OPTIONAL_LIST, REQUIRED
from malformed.item import Made, Maker
from malformed.reach import Answer, flat, pretty


def refused(raw: str | None, *, truncated: bool = False) -> Made | None:
    return None if raw is None else Made(raw, None, truncated)


def question_of(answer: Answer) -> str:
    return "plan" if "subtasks" in answer else "remember" if "debug_steps" in answer else "reflect"


def last_required(answer: Answer) -> str:
    return (REQUIRED[question_of(answer)] or [""])[-1]


def cut_in_required(answer: Answer) -> str | None:
    name = last_required(answer)
    return flat(answer)[: flat(answer).index(f'"{name}"') + len(name) + 15] if name else None


def cut_in_first_field(answer: Answer) -> str:
    return "```json\n" + pretty(answer)[: pretty(answer).index('": "') + 12]


def cut_before_required(answer: Answer) -> str | None:
    return flat(answer)[: flat(answer).index('"root_cause"') + 4] if "fix" in answer else None


def cut_at_a_quote(answer: Answer) -> str | None:
    """The last required text breaks off right after a quote that may close it or not."""
    name = last_required(answer)
    if not name:
        return None
    start = flat(answer).index(f'"{name}"')
    return flat(answer)[: start + len(name) + 13] + '"'


def example_copied(answer: Answer) -> str:
    examples: dict[str, str] = {
        "plan": '{"summary": "what to do, in one or two sentences",\n "subtasks": [{"title": "...", "criteria": '
        '["something a test can check", "..."]}]}',
        "remember": '{"summary": "...", "root_cause": "...", "fix": "...", "debug_steps": ["...", "..."]}',
        "reflect": '{"root_cause": "...", "what_failed": "...", "try_next": "..."}',
    }
    return f"```json\n{examples[question_of(answer)]}\n```" if question_of(answer) != "reflect" else "{...}"


def two_that_differ(answer: Answer) -> str:
    first = next(iter(answer))
    return f"{pretty(answer)}\n\nOr, better:\n\n{pretty({**answer, first: 'Something else altogether.'})}"


def closed_too_early(answer: Answer) -> str:
    return re.sub(r'("),\n(  "\w+": )', r"\1\n},\n\2", pretty(answer), count=1)


def field_twice(answer: Answer) -> str:
    first = next(iter(answer))
    return flat(answer).replace("{", '{"' + first + '": "Another one.", ', 1)


def odd_quotes(answer: Answer) -> str:
    first = str(next(iter(answer.values())))
    return flat({**answer, next(iter(answer)): f"{first[:8]}@, @x@: {first[8:]}"}).replace("@", '"')


def schema_echoed(answer: Answer) -> str:
    named = {key: {"type": "array" if isinstance(value, list) else "string"} for key, value in answer.items()}
    return pretty({"type": "object", "properties": named, "required": list(answer)})


def other_name(answer: Answer) -> str | None:
    name = OPTIONAL_LIST[question_of(answer)]
    if not name or not answer[name]:
        return None
    return pretty({("tasks" if key == "subtasks" else "how_to" if key == name else key): answer[key] for key in answer})


def null_required(answer: Answer) -> str | None:
    name = last_required(answer)
    return pretty({**answer, name: None}) if name else None


def missing_required(answer: Answer) -> str | None:
    name = last_required(answer)
    return pretty({key: value for key, value in answer.items() if key != name}) if name else None


def split_in_two(answer: Answer) -> str | None:
    name = OPTIONAL_LIST[question_of(answer)]
    if not name or not answer[name]:
        return None
    return f"{flat({key: item for key, item in answer.items() if key != name})}\n{flat({name: answer[name]})}"


def quotes_and_cut(answer: Answer) -> str | None:
    name = last_required(answer)
    text = flat(answer)
    return text[: text.index(f'"{name}"') + len(name) + 12] + ' "quoted" ' if name else None


def _prose(answer: Answer) -> str:
    return " ".join(str(item) for item in answer.values() if isinstance(item, str))


REFUSE: dict[str, Maker] = {
    "cut in what is required": lambda entry: refused(cut_in_required(entry), truncated=True),
    "cut, and the limit not told": lambda entry: refused(cut_in_required(entry)),
    "cut in the first field": lambda entry: refused(cut_in_first_field(entry), truncated=True),
    "cut before what is required": lambda entry: refused(cut_before_required(entry), truncated=True),
    "cut at a quote": lambda entry: refused(cut_at_a_quote(entry), truncated=True),
    "quotes inside, and cut": lambda entry: refused(quotes_and_cut(entry), truncated=True),
    "the question's example": lambda entry: refused(example_copied(entry)),
    "two that differ": lambda entry: refused(two_that_differ(entry)),
    "split in two objects": lambda entry: refused(split_in_two(entry)),
    "closed too early": lambda entry: refused(closed_too_early(entry)),
    "a field twice": lambda entry: refused(field_twice(entry)),
    "quotes inside, ambiguous": lambda entry: refused(odd_quotes(entry)),
    "the schema": lambda entry: refused(schema_echoed(entry)),
    "a list under another name": lambda entry: refused(other_name(entry)),
    "null for what is required": lambda entry: refused(null_required(entry)),
    "what is required is missing": lambda entry: refused(missing_required(entry)),
    "a thought that never ends": lambda entry: refused(f"<think>\nPerhaps {flat(entry)}? Let me see.", truncated=True),
    "prose alone": lambda entry: refused(_prose(entry)),
    "a refusal": lambda entry: refused(json.dumps({"error": f"I cannot answer that: {_prose(entry)[:20]}"})),
    "an empty fence": lambda entry: refused("```json\n```" + " " * len(entry)),
    "another object": lambda entry: refused(pretty({"name": "read", "path": f"src/{len(str(entry))}.py"})),
}

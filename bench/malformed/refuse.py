"""Kinds of damage after which nobody can tell what the answer was: whatever is read from it would be made up."""

from __future__ import annotations

import json
import re

from malformed.bases import OPTIONAL_LIST, REQUIRED
from malformed.item import Made, Maker
from malformed.reach import Answer, format_compact, format_pretty


def expect_refusal(raw: str | None, *, truncated: bool = False) -> Made | None:
    return None if raw is None else Made(raw, None, truncated)


def detect_question(answer: Answer) -> str:
    return "plan" if "subtasks" in answer else "remember" if "debug_steps" in answer else "reflect"


def find_last_required(answer: Answer) -> str:
    return (REQUIRED[detect_question(answer)] or [""])[-1]


def cut_in_required(answer: Answer) -> str | None:
    name = find_last_required(answer)
    return format_compact(answer)[: format_compact(answer).index(f'"{name}"') + len(name) + 15] if name else None


def cut_in_first_field(answer: Answer) -> str:
    return "```json\n" + format_pretty(answer)[: format_pretty(answer).index('": "') + 12]


def cut_before_required(answer: Answer) -> str | None:
    return format_compact(answer)[: format_compact(answer).index('"root_cause"') + 4] if "fix" in answer else None


def cut_at_a_quote(answer: Answer) -> str | None:
    """The last required text breaks off right after a quote that may close it or not."""
    name = find_last_required(answer)
    if not name:
        return None
    start = format_compact(answer).index(f'"{name}"')
    return format_compact(answer)[: start + len(name) + 13] + '"'


def copy_example(answer: Answer) -> str:
    examples: dict[str, str] = {
        "plan": '{"summary": "what to do, in one or two sentences",\n "subtasks": [{"title": "...", "criteria": '
        '["something a test can check", "..."]}]}',
        "remember": '{"summary": "...", "root_cause": "...", "fix": "...", "debug_steps": ["...", "..."]}',
        "reflect": '{"root_cause": "...", "what_failed": "...", "try_next": "..."}',
    }
    return f"```json\n{examples[detect_question(answer)]}\n```" if detect_question(answer) != "reflect" else "{...}"


def give_two_answers(answer: Answer) -> str:
    first_key = next(iter(answer))
    return (
        f"{format_pretty(answer)}\n\nOr, better:\n\n"
        f"{format_pretty({**answer, first_key: 'Something else altogether.'})}"
    )


def close_early(answer: Answer) -> str:
    return re.sub(r'("),\n(  "\w+": )', r"\1\n},\n\2", format_pretty(answer), count=1)


def repeat_field(answer: Answer) -> str:
    first_key = next(iter(answer))
    return format_compact(answer).replace("{", '{"' + first_key + '": "Another one.", ', 1)


def add_odd_quotes(answer: Answer) -> str:
    first_value = str(next(iter(answer.values())))
    return format_compact({**answer, next(iter(answer)): f"{first_value[:8]}@, @x@: {first_value[8:]}"}).replace(
        "@", '"'
    )


def echo_schema(answer: Answer) -> str:
    properties = {key: {"type": "array" if isinstance(value, list) else "string"} for key, value in answer.items()}
    return format_pretty({"type": "object", "properties": properties, "required": list(answer)})


def rename_list(answer: Answer) -> str | None:
    name = OPTIONAL_LIST[detect_question(answer)]
    if not name or not answer[name]:
        return None
    return format_pretty(
        {("tasks" if key == "subtasks" else "how_to" if key == name else key): answer[key] for key in answer}
    )


def nullify_required(answer: Answer) -> str | None:
    name = find_last_required(answer)
    return format_pretty({**answer, name: None}) if name else None


def remove_required(answer: Answer) -> str | None:
    name = find_last_required(answer)
    return format_pretty({key: value for key, value in answer.items() if key != name}) if name else None


def split_in_two(answer: Answer) -> str | None:
    name = OPTIONAL_LIST[detect_question(answer)]
    if not name or not answer[name]:
        return None
    return (
        f"{format_compact({key: item for key, item in answer.items() if key != name})}\n"
        f"{format_compact({name: answer[name]})}"
    )


def quote_and_cut(answer: Answer) -> str | None:
    name = find_last_required(answer)
    text = format_compact(answer)
    return text[: text.index(f'"{name}"') + len(name) + 12] + ' "quoted" ' if name else None


def _extract_prose(answer: Answer) -> str:
    return " ".join(str(item) for item in answer.values() if isinstance(item, str))


REFUSE: dict[str, Maker] = {
    "cut in what is required": lambda entry: expect_refusal(cut_in_required(entry), truncated=True),
    "cut, and the limit not told": lambda entry: expect_refusal(cut_in_required(entry)),
    "cut in the first field": lambda entry: expect_refusal(cut_in_first_field(entry), truncated=True),
    "cut before what is required": lambda entry: expect_refusal(cut_before_required(entry), truncated=True),
    "cut at a quote": lambda entry: expect_refusal(cut_at_a_quote(entry), truncated=True),
    "quotes inside, and cut": lambda entry: expect_refusal(quote_and_cut(entry), truncated=True),
    "the question's example": lambda entry: expect_refusal(copy_example(entry)),
    "two that differ": lambda entry: expect_refusal(give_two_answers(entry)),
    "split in two objects": lambda entry: expect_refusal(split_in_two(entry)),
    "closed too early": lambda entry: expect_refusal(close_early(entry)),
    "a field twice": lambda entry: expect_refusal(repeat_field(entry)),
    "quotes inside, ambiguous": lambda entry: expect_refusal(add_odd_quotes(entry)),
    "the schema": lambda entry: expect_refusal(echo_schema(entry)),
    "a list under another name": lambda entry: expect_refusal(rename_list(entry)),
    "null for what is required": lambda entry: expect_refusal(nullify_required(entry)),
    "what is required is missing": lambda entry: expect_refusal(remove_required(entry)),
    "a thought that never ends": lambda entry: expect_refusal(
        f"<think>\nPerhaps {format_compact(entry)}? Let me see.", truncated=True
    ),
    "prose alone": lambda entry: expect_refusal(_extract_prose(entry)),
    "a refusal": lambda entry: expect_refusal(
        json.dumps({"error": f"I cannot answer that: {_extract_prose(entry)[:20]}"})
    ),
    "an empty fence": lambda entry: expect_refusal("```json\n```" + " " * len(entry)),
    "another object": lambda entry: expect_refusal(
        format_pretty({"name": "read", "path": f"src/{len(str(entry))}.py"})
    ),
}

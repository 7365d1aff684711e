"""Kinds of damage after which the answer is still all there: it must be read as it was meant."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

from malformed.item import Made, Maker

Answer = dict[str, object]


def format_pretty(answer: object) -> str:
    return json.dumps(answer, indent=2, ensure_ascii=False)


def format_compact(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False)


def as_it_is(make: Callable[[Answer], str]) -> Maker:
    """A kind that changes the text and not what it says."""
    return lambda answer: Made(make(answer), answer)


def in_strings(text: str, change: Callable[[str], str]) -> str:
    """The JSON `text` with each string literal changed."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: change(match[0]), text)


def change_outside_strings(text: str, change: Callable[[str], str]) -> str:
    """The JSON `text` with everything between its string literals changed."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(parts))


def unquote_keys(answer: Answer) -> str:
    return re.sub(r'^(\s*)"(\w+)":', r"\1\2:", format_pretty(answer), flags=re.MULTILINE)


def use_python_literals(answer: Answer) -> str:
    return repr({**answer, "confident": True, "notes": None})


def with_comment(mark: str, end: str = "") -> Callable[[Answer], str]:
    def make(answer: Answer) -> str:
        lines = format_pretty(answer).split("\n")
        return "\n".join(f"{line}  {mark} line {number} of it{end}" for number, line in enumerate(lines))

    return make


def use_raw_newlines(answer: Answer) -> Made:
    changed = json.loads(in_strings(format_compact(answer), lambda item: re.sub(r"(?<=[.:;,]) ", r"\\n", item)))
    return Made(in_strings(format_compact(changed), lambda item: item.replace("\\n", "\n")), changed)


def use_smart_quotes(answer: Answer) -> str:
    return in_strings(format_pretty(answer), lambda item: f"“{item[1:-1]}”")


def use_fullwidth_punctuation(answer: Answer) -> str:
    return change_outside_strings(format_pretty(answer), lambda part: part.replace(":", "：").replace(",", "，"))


def prepend_draft_thought(answer: Answer) -> str:
    draft = dict.fromkeys(answer, "not sure yet")
    return f"<think>\nMaybe {format_compact(draft)}? No, that is too vague.\n</think>\n\n{format_pretty(answer)}"


def remove_commas(answer: Answer) -> str:
    return re.sub(r'([\]"}]),\n(?=\s*"\w+":)', r"\1\n", format_pretty(answer))


def add_inner_quotes(answer: Answer) -> Made | None:
    """Words in quotes that nothing escapes, as small models write them."""
    pattern = re.compile(r"(?<=\w )(the|and|is|at|be) ")
    changed = json.loads(in_strings(format_compact(answer), lambda item: pattern.sub(r'\\"\1\\" ', item)))
    if changed == answer:
        return None
    return Made(format_pretty(changed).replace('\\"', '"'), changed)


def use_wrong_escapes(answer: Answer) -> Made | None:
    if "\\" not in str(answer):
        return None
    return Made(in_strings(format_compact(answer), lambda item: re.sub(r"\\\\(?![nrtbfu])", r"\\", item)), answer)


def rename_keys(change: Callable[[str], str]) -> Callable[[Answer], str]:
    return lambda answer: format_pretty({change(key): value for key, value in answer.items()})


def to_camel_case(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.title() for word in tail)


def find_lists(answer: Answer) -> list[str]:
    return [key for key, value in answer.items() if isinstance(value, list) and value]


def replace_list_with_text(answer: Answer) -> Made | None:
    if "debug_steps" not in find_lists(answer):
        return None
    first_step = answer["debug_steps"][0]  # type: ignore[index]
    return Made(format_pretty({**answer, "debug_steps": first_step}), {**answer, "debug_steps": [first_step]})


def replace_texts_with_objects(answer: Answer) -> Made | None:
    if "debug_steps" not in find_lists(answer):
        return None
    steps: list[str] = answer["debug_steps"]  # type: ignore[assignment]
    return Made(format_pretty({**answer, "debug_steps": [{"step": step} for step in steps]}), answer)


def replace_objects_with_texts(answer: Answer) -> Made | None:
    if "subtasks" not in find_lists(answer):
        return None
    tasks: list[dict[str, object]] = answer["subtasks"]  # type: ignore[assignment]
    bare_tasks = [{"title": task["title"], "criteria": []} for task in tasks]
    return Made(
        format_pretty({**answer, "subtasks": [task["title"] for task in tasks]}), {**answer, "subtasks": bare_tasks}
    )


def list_as_text(answer: Answer) -> Made | None:
    list_names = find_lists(answer)
    return (
        Made(format_pretty({**answer, list_names[0]: format_compact(answer[list_names[0]])}), answer)
        if list_names
        else None
    )


def replace_list_with_null(answer: Answer) -> Made | None:
    name = next((key for key in ("subtasks", "debug_steps") if key in answer), "")
    return Made(format_pretty({**answer, name: None}), {**answer, name: []}) if name else None


def number_for_text(answer: Answer) -> Made | None:
    if "subtasks" not in find_lists(answer):
        return None
    tasks: list[dict[str, object]] = answer["subtasks"]  # type: ignore[assignment]
    numbered_tasks = [{**task, "title": number} for number, task in enumerate(tasks, 1)]
    expected_tasks = [{**task, "title": str(number)} for number, task in enumerate(tasks, 1)]
    return Made(format_pretty({**answer, "subtasks": numbered_tasks}), {**answer, "subtasks": expected_tasks})


def remove_bracket(answer: Answer) -> Made | None:
    """The last list is not closed, the objects around it are."""
    text = format_compact(answer)
    if not text.endswith("]}") or not find_lists(answer):
        return None
    return Made(text[:-2] + "}", answer)


def without_braces(answer: Answer) -> str:
    return format_pretty(answer).removeprefix("{\n").removesuffix("\n}")


def use_triple_quotes(answer: Answer) -> Made:
    text = re.sub(
        r'(?<=: )"((?:[^"\\]|\\.)*)"', lambda item: '"""' + json.loads(item[0]) + '"""', format_pretty(answer)
    )
    return Made(text, answer)


def concatenate_strings(answer: Answer) -> str:
    return re.sub(r'(?<=: )"((?:[^"\\]|\\.){20,})"', lambda item: _split_literal(item[0]), format_pretty(answer))


def _split_literal(literal: str) -> str:
    text = json.loads(literal)
    return f"{format_compact(text[:10])} +\n    {format_compact(text[10:])}"


def cut_in_list(answer: Answer) -> Made | None:
    """The text ends inside the last item of the last list: the items before it are whole."""
    list_names = find_lists(answer)
    if not list_names:
        return None
    items: list[object] = answer[list_names[-1]]  # type: ignore[assignment]
    text = format_compact(answer)
    start = text.rindex(format_compact(items[-1])) if isinstance(items[-1], str) else text.rindex('{"title"')
    return Made(text[: start + 14], {**answer, list_names[-1]: items[:-1]}, truncated=True)


def cut_before_optional(answer: Answer) -> Made | None:
    name = next((key for key in ("subtasks", "debug_steps") if key in answer), "")
    text = format_compact(answer)
    return Made(text[: text.index(f'"{name}"') + 5], {**answer, name: []}, truncated=True) if name else None


def prepend_example(answer: Answer) -> str:
    example = json.dumps(dict.fromkeys(answer, "..."))
    return f"The format is {example}. So here is mine:\n\n{format_pretty(answer)}"


def repeat_and_cut(answer: Answer) -> Made:
    text = format_pretty(answer)
    return Made(f"{text}\n\n{text[: len(text) // 3]}", answer, truncated=True)


def append_chatter(answer: Answer) -> Made:
    trailing_text = "\n\nThis answer follows the form that you asked for. Let me know if you want me to go on. " * 4
    return Made(f"```json\n{format_pretty(answer)}\n```{trailing_text}", answer, truncated=True)


REACH: dict[str, Maker] = {
    "plain": as_it_is(format_pretty),
    "fenced": as_it_is(lambda entry: f"```json\n{format_pretty(entry)}\n```"),
    "fenced without a language": as_it_is(lambda entry: f"```\n{format_compact(entry)}\n```"),
    "fence never closed": as_it_is(lambda entry: f"```json\n{format_pretty(entry)}\n"),
    "tilde fence": as_it_is(lambda entry: f"~~~\n{format_pretty(entry)}\n~~~"),
    "prose before": as_it_is(lambda entry: f"Sure! Here is the JSON you asked for:\n\n{format_pretty(entry)}"),
    "prose around": as_it_is(lambda entry: f"Of course.\n```json\n{format_compact(entry)}\n```\nI hope this helps!"),
    "prose with braces": as_it_is(
        lambda entry: f"Neither {{a, b}} nor f'{{name}}' matters.\n{format_compact(entry)}\nSee {{x}}."
    ),
    "Python's repr": as_it_is(repr),
    "Python's words": as_it_is(use_python_literals),
    "trailing commas": as_it_is(
        lambda entry: re.sub(r'(["\]}])\n', r"\1,\n", format_pretty(entry)).replace("[],", "[]")
    ),
    "comments //": as_it_is(with_comment("//")),
    "comments #": as_it_is(with_comment("#")),
    "comments /* */": as_it_is(with_comment("/*", " */")),
    "names without quotes": as_it_is(unquote_keys),
    "raw line breaks": use_raw_newlines,
    "raw tabs": as_it_is(lambda entry: format_pretty(entry).replace("  ", "\t")),
    "smart quotes": as_it_is(use_smart_quotes),
    "fullwidth punctuation": as_it_is(use_fullwidth_punctuation),
    "byte order mark": as_it_is(lambda entry: "\ufeff" + format_pretty(entry)),
    "zero-width blanks": as_it_is(
        lambda entry: change_outside_strings(format_pretty(entry), lambda part: part.replace("\n", "\n\u200b"))
    ),
    "Windows line ends": as_it_is(lambda entry: f"```json\n{format_pretty(entry)}\n```".replace("\n", "\r\n")),
    "thought with a draft": as_it_is(prepend_draft_thought),
    "end of a thought alone": as_it_is(lambda entry: f"The user wants JSON.\n</think>\n{format_compact(entry)}"),
    "the same object twice": as_it_is(
        lambda entry: f"{format_pretty(entry)}\n\nAgain, as one line:\n{format_compact(entry)}"
    ),
    "JSON in a JSON string": as_it_is(lambda entry: format_compact(format_pretty(entry))),
    "escaped as if in a string": as_it_is(lambda entry: format_compact(format_compact(entry))[1:-1]),
    "HTML entities": as_it_is(lambda entry: html.escape(format_compact(entry))),
    "wrapped in one field": as_it_is(lambda entry: format_pretty({"answer": entry})),
    "as a call": as_it_is(lambda entry: f"```json\n{format_compact({'name': 'respond', 'arguments': entry})}\n```"),
    "as a call, arguments a string": as_it_is(
        lambda entry: format_compact({"name": "respond", "arguments": format_compact(entry)})
    ),
    "in a tag": as_it_is(lambda entry: f"<answer>\n{format_pretty(entry)}\n</answer>"),
    "list of one": as_it_is(lambda entry: format_pretty([entry])),
    "assigned": as_it_is(lambda entry: f"```python\nresult = {format_pretty(entry)}\n```"),
    "last brace missing, fence closed": as_it_is(
        lambda entry: f"```json\n{format_pretty(entry).removesuffix('}').rstrip()}\n```"
    ),
    "last brace missing": as_it_is(lambda entry: format_pretty(entry).removesuffix("}")),
    "a bracket missing": remove_bracket,
    "braces too many": as_it_is(lambda entry: format_pretty(entry) + "\n}}"),
    "doubled braces": as_it_is(lambda entry: "{" + format_pretty(entry) + "}"),
    "outer braces missing": as_it_is(without_braces),
    "commas missing": as_it_is(remove_commas),
    "quotes inside": add_inner_quotes,
    "escapes that JSON has not": use_wrong_escapes,
    "camelCase names": as_it_is(rename_keys(to_camel_case)),
    "Names With Blanks": as_it_is(rename_keys(lambda key: key.replace("_", " ").title())),
    "NAMES-IN-CAPITALS": as_it_is(rename_keys(lambda key: key.replace("_", "-").upper())),
    "a text for a list": replace_list_with_text,
    "objects for texts": replace_texts_with_objects,
    "texts for objects": replace_objects_with_texts,
    "a list as a text of JSON": list_as_text,
    "null for a list": replace_list_with_null,
    "a number for a text": number_for_text,
    "triple quotes": use_triple_quotes,
    "strings added up": as_it_is(concatenate_strings),
    "an example first": as_it_is(prepend_example),
    "cut in a list": cut_in_list,
    "cut before what is optional": cut_before_optional,
    "repeated, then cut": repeat_and_cut,
    "chatter up to the limit": append_chatter,
}

"""Kinds of damage after which the answer is still all there: it must be read as it was meant."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

from malformed.item import Made, Maker

Answer = dict[str, object]


def pretty(answer: object) -> str:
    return json.dumps(answer, indent=2, ensure_ascii=False)


def flat(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False)


def as_it_is(make: Callable[[Answer], str]) -> Maker:
    """A kind that changes the text and not what it says."""
    return lambda answer: Made(make(answer), answer)


def in_strings(text: str, change: Callable[[str], str]) -> str:
    """The JSON `text` with each string literal changed."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: change(found[0]), text)


def outside(text: str, change: Callable[[str], str]) -> str:
    """The JSON `text` with everything between its string literals changed."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def unquoted_keys(answer: Answer) -> str:
    return re.sub(r'^(\s*)"(\w+)":', r"\1\2:", pretty(answer), flags=re.MULTILINE)


def python_words(answer: Answer) -> str:
    return repr({**answer, "confident": True, "notes": None})


def with_comment(mark: str, end: str = "") -> Callable[[Answer], str]:
    def make(answer: Answer) -> str:
        lines = pretty(answer).split("\n")
        return "\n".join(f"{line}  {mark} line {at} of it{end}" for at, line in enumerate(lines))

    return make


def raw_breaks(answer: Answer) -> Made:
    changed = json.loads(in_strings(flat(answer), lambda item: re.sub(r"(?<=[.:;,]) ", r"\\n", item)))
    return Made(in_strings(flat(changed), lambda item: item.replace("\\n", "\n")), changed)


def smart_quotes(answer: Answer) -> str:
    return in_strings(pretty(answer), lambda item: f"“{item[1:-1]}”")


def fullwidth(answer: Answer) -> str:
    return outside(pretty(answer), lambda part: part.replace(":", "：").replace(",", "，"))


def think_with_draft(answer: Answer) -> str:
    draft = dict.fromkeys(answer, "not sure yet")
    return f"<think>\nMaybe {flat(draft)}? No, that is too vague.\n</think>\n\n{pretty(answer)}"


def missing_commas(answer: Answer) -> str:
    return re.sub(r'([\]"}]),\n(?=\s*"\w+":)', r"\1\n", pretty(answer))


def inner_quotes(answer: Answer) -> Made | None:
    """Words in quotes that nothing escapes, as small models write them."""
    quoted = re.compile(r"(?<=\w )(the|and|is|at|be) ")
    changed = json.loads(in_strings(flat(answer), lambda item: quoted.sub(r'\\"\1\\" ', item)))
    if changed == answer:
        return None
    return Made(pretty(changed).replace('\\"', '"'), changed)


def wrong_escapes(answer: Answer) -> Made | None:
    if "\\" not in str(answer):
        return None
    return Made(in_strings(flat(answer), lambda item: re.sub(r"\\\\(?![nrtbfu])", r"\\", item)), answer)


def spelt(change: Callable[[str], str]) -> Callable[[Answer], str]:
    return lambda answer: pretty({change(key): value for key, value in answer.items()})


def camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.title() for word in tail)


def lists(answer: Answer) -> list[str]:
    return [key for key, value in answer.items() if isinstance(value, list) and value]


def text_for_list(answer: Answer) -> Made | None:
    if "debug_steps" not in lists(answer):
        return None
    first = answer["debug_steps"][0]  # type: ignore[index]
    return Made(pretty({**answer, "debug_steps": first}), {**answer, "debug_steps": [first]})


def objects_for_texts(answer: Answer) -> Made | None:
    if "debug_steps" not in lists(answer):
        return None
    steps: list[str] = answer["debug_steps"]  # type: ignore[assignment]
    return Made(pretty({**answer, "debug_steps": [{"step": step} for step in steps]}), answer)


def texts_for_objects(answer: Answer) -> Made | None:
    if "subtasks" not in lists(answer):
        return None
    tasks: list[dict[str, object]] = answer["subtasks"]  # type: ignore[assignment]
    bare = [{"title": task["title"], "criteria": []} for task in tasks]
    return Made(pretty({**answer, "subtasks": [task["title"] for task in tasks]}), {**answer, "subtasks": bare})


def list_as_text(answer: Answer) -> Made | None:
    named = lists(answer)
    return Made(pretty({**answer, named[0]: flat(answer[named[0]])}), answer) if named else None


def null_for_list(answer: Answer) -> Made | None:
    name = next((key for key in ("subtasks", "debug_steps") if key in answer), "")
    return Made(pretty({**answer, name: None}), {**answer, name: []}) if name else None


def number_for_text(answer: Answer) -> Made | None:
    if "subtasks" not in lists(answer):
        return None
    tasks: list[dict[str, object]] = answer["subtasks"]  # type: ignore[assignment]
    numbered = [{**task, "title": at} for at, task in enumerate(tasks, 1)]
    meant = [{**task, "title": str(at)} for at, task in enumerate(tasks, 1)]
    return Made(pretty({**answer, "subtasks": numbered}), {**answer, "subtasks": meant})


def bracket_missing(answer: Answer) -> Made | None:
    """The last list is not closed, the objects around it are."""
    text = flat(answer)
    if not text.endswith("]}") or not lists(answer):
        return None
    return Made(text[:-2] + "}", answer)


def without_braces(answer: Answer) -> str:
    return pretty(answer).removeprefix("{\n").removesuffix("\n}")


def tripled(answer: Answer) -> Made:
    text = re.sub(r'(?<=: )"((?:[^"\\]|\\.)*)"', lambda item: '"""' + json.loads(item[0]) + '"""', pretty(answer))
    return Made(text, answer)


def added_up(answer: Answer) -> str:
    return re.sub(r'(?<=: )"((?:[^"\\]|\\.){20,})"', lambda item: _halves(item[0]), pretty(answer))


def _halves(literal: str) -> str:
    said = json.loads(literal)
    return f"{flat(said[:10])} +\n    {flat(said[10:])}"


def cut_in_list(answer: Answer) -> Made | None:
    """The text ends inside the last item of the last list: the items before it are whole."""
    named = lists(answer)
    if not named:
        return None
    items: list[object] = answer[named[-1]]  # type: ignore[assignment]
    text = flat(answer)
    start = text.rindex(flat(items[-1])) if isinstance(items[-1], str) else text.rindex('{"title"')
    return Made(text[: start + 14], {**answer, named[-1]: items[:-1]}, truncated=True)


def cut_before_optional(answer: Answer) -> Made | None:
    name = next((key for key in ("subtasks", "debug_steps") if key in answer), "")
    text = flat(answer)
    return Made(text[: text.index(f'"{name}"') + 5], {**answer, name: []}, truncated=True) if name else None


def example_first(answer: Answer) -> str:
    example = json.dumps(dict.fromkeys(answer, "..."))
    return f"The format is {example}. So here is mine:\n\n{pretty(answer)}"


def repeated_and_cut(answer: Answer) -> Made:
    text = pretty(answer)
    return Made(f"{text}\n\n{text[: len(text) // 3]}", answer, truncated=True)


def chatter(answer: Answer) -> Made:
    told = "\n\nThis answer follows the form that you asked for. Let me know if you want me to go on. " * 4
    return Made(f"```json\n{pretty(answer)}\n```{told}", answer, truncated=True)


REACH: dict[str, Maker] = {
    "plain": as_it_is(pretty),
    "fenced": as_it_is(lambda entry: f"```json\n{pretty(entry)}\n```"),
    "fenced without a language": as_it_is(lambda entry: f"```\n{flat(entry)}\n```"),
    "fence never closed": as_it_is(lambda entry: f"```json\n{pretty(entry)}\n"),
    "tilde fence": as_it_is(lambda entry: f"~~~\n{pretty(entry)}\n~~~"),
    "prose before": as_it_is(lambda entry: f"Sure! Here is the JSON you asked for:\n\n{pretty(entry)}"),
    "prose around": as_it_is(lambda entry: f"Of course.\n```json\n{flat(entry)}\n```\nI hope this helps!"),
    "prose with braces": as_it_is(
        lambda entry: f"Neither {{a, b}} nor f'{{name}}' matters.\n{flat(entry)}\nSee {{x}}."
    ),
    "Python's repr": as_it_is(repr),
    "Python's words": as_it_is(python_words),
    "trailing commas": as_it_is(lambda entry: re.sub(r'(["\]}])\n', r"\1,\n", pretty(entry)).replace("[],", "[]")),
    "comments //": as_it_is(with_comment("//")),
    "comments #": as_it_is(with_comment("#")),
    "comments /* */": as_it_is(with_comment("/*", " */")),
    "names without quotes": as_it_is(unquoted_keys),
    "raw line breaks": raw_breaks,
    "raw tabs": as_it_is(lambda entry: pretty(entry).replace("  ", "\t")),
    "smart quotes": as_it_is(smart_quotes),
    "fullwidth punctuation": as_it_is(fullwidth),
    "byte order mark": as_it_is(lambda entry: "\ufeff" + pretty(entry)),
    "zero-width blanks": as_it_is(lambda entry: outside(pretty(entry), lambda part: part.replace("\n", "\n\u200b"))),
    "Windows line ends": as_it_is(lambda entry: f"```json\n{pretty(entry)}\n```".replace("\n", "\r\n")),
    "thought with a draft": as_it_is(think_with_draft),
    "end of a thought alone": as_it_is(lambda entry: f"The user wants JSON.\n</think>\n{flat(entry)}"),
    "the same object twice": as_it_is(lambda entry: f"{pretty(entry)}\n\nAgain, as one line:\n{flat(entry)}"),
    "JSON in a JSON string": as_it_is(lambda entry: flat(pretty(entry))),
    "escaped as if in a string": as_it_is(lambda entry: flat(flat(entry))[1:-1]),
    "HTML entities": as_it_is(lambda entry: html.escape(flat(entry))),
    "wrapped in one field": as_it_is(lambda entry: pretty({"answer": entry})),
    "as a call": as_it_is(lambda entry: f"```json\n{flat({'name': 'respond', 'arguments': entry})}\n```"),
    "as a call, arguments a string": as_it_is(lambda entry: flat({"name": "respond", "arguments": flat(entry)})),
    "in a tag": as_it_is(lambda entry: f"<answer>\n{pretty(entry)}\n</answer>"),
    "list of one": as_it_is(lambda entry: pretty([entry])),
    "assigned": as_it_is(lambda entry: f"```python\nresult = {pretty(entry)}\n```"),
    "last brace missing, fence closed": as_it_is(
        lambda entry: f"```json\n{pretty(entry).removesuffix('}').rstrip()}\n```"
    ),
    "last brace missing": as_it_is(lambda entry: pretty(entry).removesuffix("}")),
    "a bracket missing": bracket_missing,
    "braces too many": as_it_is(lambda entry: pretty(entry) + "\n}}"),
    "doubled braces": as_it_is(lambda entry: "{" + pretty(entry) + "}"),
    "outer braces missing": as_it_is(without_braces),
    "commas missing": as_it_is(missing_commas),
    "quotes inside": inner_quotes,
    "escapes that JSON has not": wrong_escapes,
    "camelCase names": as_it_is(spelt(camel)),
    "Names With Blanks": as_it_is(spelt(lambda key: key.replace("_", " ").title())),
    "NAMES-IN-CAPITALS": as_it_is(spelt(lambda key: key.replace("_", "-").upper())),
    "a text for a list": text_for_list,
    "objects for texts": objects_for_texts,
    "texts for objects": texts_for_objects,
    "a list as a text of JSON": list_as_text,
    "null for a list": null_for_list,
    "a number for a text": number_for_text,
    "triple quotes": tripled,
    "strings added up": as_it_is(added_up),
    "an example first": as_it_is(example_first),
    "cut in a list": cut_in_list,
    "cut before what is optional": cut_before_optional,
    "repeated, then cut": repeated_and_cut,
    "chatter up to the limit": chatter,
}

"""Asks a model at an endpoint the project's own questions and writes down what it says, well-formed or not.

    python bench/malformed/record.py --url http://127.0.0.1:8080 --out answers.jsonl

Each row is an item of recorded.jsonl, with what was asked, and without `expected`: that is added by looking at `raw`,
the value that it says to whoever reads it, or null where it says none. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from redstart.core.change import EditKind
from redstart.core.chat import Message, Role
from redstart.core.report import Case, Outcome
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import SHAPES
from redstart.toolkit.prompts.answers import read_answer
from redstart.toolkit.prompts.ask_model import format_json_note
from redstart.toolkit.prompts.edit_forms import describe_form
from redstart.toolkit.prompts.render import format_section, render

SECONDS = 1800
TEMPERATURES = (0.0, 0.8, 1.2)


class Bug(NamedTuple):
    path: str
    code: str
    test: str
    message: str
    fixed: str

    @property
    def failing(self) -> str:
        return sections.build_failing_section([Case(id=self.test, outcome=Outcome.failed, message=self.message)], 1)

    @property
    def diff(self) -> str:
        removed, come = self.code.splitlines(), self.fixed.splitlines()
        return "\n".join(
            [f"-{line}" for line in removed if line not in come] + [f"+{item}" for item in come if item not in removed]
        )


BUGS = (
    Bug(
        "shop/cart.py",
        "def total(prices):\n    return sum(prices[1:])\n",
        "test_cart.py::test_total",
        "assert 5 == 6",
        "def total(prices):\n    return sum(prices)\n",
    ),
    Bug(
        "words.py",
        "def title(text):\n    return text[0].upper() + text[1:]\n",
        "test_words.py::test_empty",
        "IndexError: string index out of range",
        "def title(text):\n    return text[:1].upper() + text[1:]\n",
    ),
    Bug(
        "clock.py",
        'def format_time(minutes):\n    return f"{minutes // 60}:{minutes % 60}"\n',
        "test_clock.py::test_pads",
        "AssertionError: assert '1:5' == '1:05'",
        'def format_time(minutes):\n    return f"{minutes // 60}:{minutes % 60:02}"\n',
    ),
    Bug(
        "config.py",
        "def load(path, cache={}):\n    return cache.setdefault(path, open(path).read())\n",
        "test_config.py::test_fresh",
        "assert 'old' == 'new'",
        "def load(path):\n    return open(path).read()\n",
    ),
    Bug(
        "names.py",
        'import re\n\n\ndef slug(name):\n    return re.sub("\\W+", "-", name).lower()\n',
        "test_names.py::test_edges",
        "assert '-a-b-' == 'a-b'",
        'import re\n\n\ndef slug(name):\n    return re.sub(r"\\W+", "-", name).strip("-").lower()\n',
    ),
    Bug(
        "stack.py",
        "class Stack:\n    items = []\n\n    def push(self, item):\n        self.items.append(item)\n",
        "test_stack.py::test_two",
        "assert [1] == []",
        "class Stack:\n    def __init__(self):\n        self.items = []\n",
    ),
)
GOALS = (
    "A command line tool that counts the words of a text file and prints the ten most frequent ones.",
    "A function `roman(n)` that writes 1 to 3999 in Roman numerals and refuses other numbers with ValueError.",
    'A small library that reads "key = value" lines, ignores comments that begin with #, and returns a dict.',
    "A module that converts temperatures between Celsius, Fahrenheit and Kelvin.",
)


class Job(NamedTuple):
    question: str
    messages: tuple[Message, ...]
    max_tokens: int


def generate_jobs() -> Iterator[Job]:
    """The questions; those that share a beginning follow one another, for the sake of the endpoint's cache."""
    for bug in BUGS:
        attempt = format_section("What was tried", wrap_untrusted("attempt", bug.diff))
        for max_tokens in (80, 80, 45, 80):
            yield Job("reflect", render("reflect", failing=bug.failing, tried=attempt), max_tokens)
    for bug in BUGS:
        fix = format_section("The fix", wrap_untrusted("patch", bug.diff))
        for max_tokens in (240, 240, 60, 240):
            yield Job("remember", render("remember", failing=bug.failing, fix=fix), max_tokens)
    for goal in GOALS:
        for max_tokens in (300, 300, 300, 90):
            yield Job("plan", render("plan", goal=sections.build_goal_section(goal)), max_tokens)
    as_json = describe_form(EditKind.whole, as_json=True)
    for bug in BUGS:
        yield Job("plan", render("plan", failing=bug.failing), 240)
        code = format_section("Code", wrap_untrusted(f"{bug.path} lines 1-9", bug.code))
        for max_tokens in (240, 240):
            yield Job("patch", render("patch", answer=as_json, failing=bug.failing, code=code), max_tokens)
    for goal in GOALS[1:]:
        package = format_section("Package name", wrap_untrusted("user", "tool", 100))
        yield Job("reproduce", render("reproduce", goal=sections.build_goal_section(goal), package=package), 160)


class Said(NamedTuple):
    text: str
    cut: bool


def ask_model(url: str, messages: tuple[Message, ...], max_tokens: int, number: int) -> Said:
    body = {
        "model": "local",
        "messages": [{"role": message.role.value, "content": message.text} for message in messages],
        "max_tokens": max_tokens,
        "temperature": TEMPERATURES[number % len(TEMPERATURES)],
        "seed": number,
    }
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        choice: dict[str, Any] = json.load(reply)["choices"][0]
    return Said(choice["message"]["content"], choice["finish_reason"] == "length")


def generate_rows(url: str, number: int, job: Job) -> Iterator[dict[str, object]]:
    """What the model says; where that is no answer, also what it says to the repair turn."""
    answer = ask_model(url, job.messages, job.max_tokens, number)
    common_fields = {"question": job.question, "asked": job.messages[-1].text}
    yield {"id": f"r{number:03}", **common_fields, "raw": answer.text, "truncated": answer.cut}
    if answer.cut or job.question not in SHAPES:
        return
    read = read_answer(answer.text, SHAPES[job.question], question=job.messages[0].text)
    if read.value is None:
        repair_messages = (
            Message(role=Role.assistant, text=answer.text),
            Message(role=Role.user, text=format_json_note(read.error)),
        )
        repaired = ask_model(url, (*job.messages, *repair_messages), job.max_tokens, number)
        yield {
            "id": f"r{number:03}b",
            "after": f"r{number:03}",
            **common_fields,
            "raw": repaired.text,
            "truncated": repaired.cut,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an endpoint that speaks the wire of chat completions")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    existing_lines = args.out.read_text(encoding="utf-8").splitlines() if args.out.exists() else []
    known_ids = {json.loads(line)["id"] for line in existing_lines}
    for number, job in enumerate(generate_jobs()):
        if f"r{number:03}" in known_ids:
            continue
        with args.out.open("a", encoding="utf-8") as file:
            for row in generate_rows(args.url.rstrip("/"), number, job):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{number + 1}: {job.question}", flush=True)


if __name__ == "__main__":
    main()

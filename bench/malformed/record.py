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
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import read_answer
from redstart.toolkit.prompts.asking import json_note
from redstart.toolkit.prompts.forms import form_words
from redstart.toolkit.prompts.render import render, section
from redstart.toolkit.prompts.shapes import SHAPES

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
        return sections.failing([Case(id=self.test, outcome=Outcome.failed, message=self.message)], 1)

    @property
    def diff(self) -> str:
        gone, come = self.code.splitlines(), self.fixed.splitlines()
        return "\n".join(
            [f"-{line}" for line in gone if line not in come] + [f"+{item}" for item in come if item not in gone]
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


def jobs() -> Iterator[Job]:
    """The questions; those that share a beginning follow one another, for the sake of the endpoint's cache."""
    for bug in BUGS:
        tried = section("What was tried", data("attempt", bug.diff))
        for most in (80, 80, 45, 80):
            yield Job("reflect", render("reflect", failing=bug.failing, tried=tried), most)
    for bug in BUGS:
        fix = section("The fix", data("patch", bug.diff))
        for most in (240, 240, 60, 240):
            yield Job("remember", render("remember", failing=bug.failing, fix=fix), most)
    for goal in GOALS:
        for most in (300, 300, 300, 90):
            yield Job("plan", render("plan", goal=sections.goal(goal)), most)
    as_json = form_words(EditKind.whole, shaped=True)
    for bug in BUGS:
        yield Job("plan", render("plan", failing=bug.failing), 240)
        code = section("Code", data(f"{bug.path} lines 1-9", bug.code))
        for most in (240, 240):
            yield Job("patch", render("patch", answer=as_json, failing=bug.failing, code=code), most)
    for goal in GOALS[1:]:
        package = section("Package name", data("user", "tool", 100))
        yield Job("reproduce", render("reproduce", goal=sections.goal(goal), package=package), 160)


class Said(NamedTuple):
    text: str
    cut: bool


def say(url: str, messages: tuple[Message, ...], most: int, number: int) -> Said:
    body = {
        "model": "local",
        "messages": [{"role": message.role.value, "content": message.text} for message in messages],
        "max_tokens": most,
        "temperature": TEMPERATURES[number % len(TEMPERATURES)],
        "seed": number,
    }
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        choice: dict[str, Any] = json.load(reply)["choices"][0]
    return Said(choice["message"]["content"], choice["finish_reason"] == "length")


def rows(url: str, number: int, job: Job) -> Iterator[dict[str, object]]:
    """What the model says; where that is no answer, also what it says to the repair turn."""
    said = say(url, job.messages, job.max_tokens, number)
    shared = {"question": job.question, "asked": job.messages[-1].text}
    yield {"id": f"r{number:03}", **shared, "raw": said.text, "truncated": said.cut}
    if said.cut or job.question not in SHAPES:
        return
    read = read_answer(said.text, SHAPES[job.question], asked=job.messages[0].text)
    if read.value is None:
        told = Message(role=Role.assistant, text=said.text), Message(role=Role.user, text=json_note(read.error))
        again = say(url, (*job.messages, *told), job.max_tokens, number)
        yield {"id": f"r{number:03}b", "after": f"r{number:03}", **shared, "raw": again.text, "truncated": again.cut}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an endpoint that speaks the wire of chat completions")
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    done = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    known = {json.loads(line)["id"] for line in done}
    for number, job in enumerate(jobs()):
        if f"r{number:03}" in known:
            continue
        with given.out.open("a", encoding="utf-8") as file:
            for row in rows(given.url.rstrip("/"), number, job):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{number + 1}: {job.question}", flush=True)


if __name__ == "__main__":
    main()

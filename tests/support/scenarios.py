"""Scripted providers for whole runs: they give the right patch only if the prompt contains what a model would need.

They are instruments: they measure the system around the model, not a model.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from redstart.core.frozen import FrozenValue
from redstart.evals.scripted_models import CARD, PLAN, REFLECTION
from support.server import Request


class Needs(FrozenValue):
    """Texts that the request must contain to get the right patch."""

    ids: tuple[str, ...]
    assertion: tuple[str, ...]
    lines: tuple[str, ...] = ()


class Scenario(FrozenValue):
    """A tiny repo with a bug, a right answer and a plausible wrong answer."""

    name: str
    kind: str
    runner: str
    red: tuple[str, ...]
    needs: Needs
    feedback: bool
    """Whether the right answer also requires what the last attempt tried and why it failed."""
    tried: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    files: tuple[str, ...]
    wrong: str
    right: str

    @classmethod
    def load(cls, folder: Path) -> Scenario:
        return cls.model_validate_json((folder / "scenario.json").read_bytes())

    def list_missing(self, text: str) -> list[str]:
        """List the texts that a request lacks to get the right patch."""
        required = (*self.needs.ids, *self.needs.assertion, *self.needs.lines, *self.tried, *self.failed)
        return [item for item in required if item not in text]

    def reply(self, request: Request) -> str:
        """Answer a request as the server's script."""
        question_name = parse_question(request)
        if question_name == "remember":
            return CARD
        if question_name == "reflect":
            return REFLECTION
        if question_name == "plan":
            return PLAN
        return self.wrong if self.list_missing(request.text) else self.right


class Goal(FrozenValue):
    """A goal in words with the answers that lead to it; the first attempt at the code is wrong."""

    name: str
    goal: str
    package: str
    plan: str
    tests: str
    wrong: str
    right: str
    needs: Needs

    @classmethod
    def load(cls, folder: Path) -> Goal:
        return cls.model_validate_json((folder / "goal.json").read_bytes())

    def reply(self, request: Request) -> str:
        answers: dict[str, Callable[[], str]] = {
            "plan": lambda: self.plan,
            "reproduce": lambda: self.tests,
            "patch": lambda: self._patch(request.text),
            "reflect": lambda: REFLECTION,
        }
        return answers[parse_question(request)]()

    def _patch(self, text: str) -> str:
        required = (*self.needs.ids, *self.needs.assertion, *self.needs.lines)
        return self.wrong if any(item not in text for item in required) else self.right


class Program:
    """A goal in words with the answers to each question, in order; see `tests/scenario/programs`.

    Questions about a part of the program have separate answers. The last answer repeats; the last edits are given
    only to a prompt that contains what they need.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        head, *answers = re.split(r"^@@@ ", text, flags=re.MULTILINE)
        header = dict(line.split(": ", 1) for line in head.splitlines() if line)
        self.goal, self.package = header["goal"], header["package"]
        self.lang, self.kind = header.get("lang", "python"), header.get("kind", "")
        self.options = ("--max-attempts", header["max_attempts"]) if "max_attempts" in header else ()
        self._needs = header.get("needs", "")
        self._answers: dict[tuple[str, str], list[str]] = {}
        for answer in answers:
            title, _, body = answer.partition("\n")
            question_name, _, part = title.partition(" ")
            self._answers.setdefault((question_name, part), []).append(body)
        self._given: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    @classmethod
    def load(cls, file: Path) -> Program:
        return cls(file.stem, file.read_text(encoding="utf-8"))

    @property
    def code(self) -> frozenset[str]:
        """Lines that occur only in the program."""
        edits = (
            text for (question_name, _), texts in self._answers.items() if question_name == "patch" for text in texts
        )
        code_lines = {
            line.strip() for text in edits for line in text.splitlines() if line.startswith(("def ", "export "))
        }
        return frozenset(code_lines)

    def count_unused(self) -> dict[tuple[str, str], int]:
        """Count the unused answers by question."""
        return {
            key: len(texts) - self._given[key] for key, texts in self._answers.items() if len(texts) > self._given[key]
        }

    def reply(self, request: Request) -> str:
        with self._lock:
            question_name = parse_question(request)
            if question_name == "reflect":
                return REFLECTION
            parts = (
                part for _, part in self._answers if part and f'## Goal\n<data from="user">\n{part}\n' in request.text
            )
            key = (question_name, next(parts, ""))
            texts = self._answers[key]
            index = min(self._given[key], len(texts) - 1)
            if question_name == "patch" and index == len(texts) - 1 and index and self._needs not in request.text:
                index -= 1
            else:
                self._given[key] += 1
            return texts[index]


def parse_question(request: Request) -> str:
    """Return the question of a request, from the first line of its system text."""
    return request.system.splitlines()[0].removeprefix("redstart question: ").strip()


class Recorded:
    """A script that records the order of questions."""

    def __init__(self, reply: Callable[[Request], str]) -> None:
        self._reply, self._lock = reply, threading.Lock()
        self.questions: list[str] = []

    def __call__(self, request: Request) -> str:
        with self._lock:
            self.questions.append(parse_question(request))
        return self._reply(request)

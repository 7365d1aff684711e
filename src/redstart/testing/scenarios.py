"""Scripted providers for whole runs: the right patch only for a prompt that holds what a model would need.

They are instruments: they measure what is around the model, not a model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

from redstart.core.noun import Noun
from redstart.testing.server import Request

CARD = json.dumps(
    {"summary": "a small bug", "root_cause": "as the patch says", "fix": "as the patch does", "debug_steps": []}
)


class Needs(Noun):
    """Texts that the request must hold before the right patch is given."""

    ids: tuple[str, ...]
    assertion: tuple[str, ...]
    lines: tuple[str, ...] = ()


class Scenario(Noun):
    """A tiny repo with a bug, a right and a plausible wrong answer."""

    name: str
    kind: str
    runner: str
    red: tuple[str, ...]
    needs: Needs
    feedback: bool
    """Whether the right answer also takes what the last attempt tried and why it failed."""
    tried: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    files: tuple[str, ...]
    wrong: str
    right: str

    @classmethod
    def load(cls, folder: Path) -> Scenario:
        return cls.model_validate_json((folder / "scenario.json").read_bytes())

    def missing(self, text: str) -> list[str]:
        """What the right patch still lacks in a request with this text."""
        wanted = (*self.needs.ids, *self.needs.assertion, *self.needs.lines, *self.tried, *self.failed)
        return [one for one in wanted if one not in text]

    def reply(self, request: Request) -> str:
        """The script of the server."""
        asked = question(request)
        if asked == "remember":
            return CARD
        if asked == "plan":
            return json.dumps({"summary": "look again", "subtasks": []})
        return self.wrong if self.missing(request.text) else self.right


class Goal(Noun):
    """A goal in words with the answers that lead to it, the first attempt at the code being wrong."""

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
        }
        return answers[question(request)]()

    def _patch(self, text: str) -> str:
        wanted = (*self.needs.ids, *self.needs.assertion, *self.needs.lines)
        return self.wrong if any(one not in text for one in wanted) else self.right


def question(request: Request) -> str:
    """Which of the questions a request asks: the first line of its system text says so."""
    return request.system.splitlines()[0].removeprefix("redstart question: ").strip()


class Recorded:
    """A script that keeps which question was asked when, for tests that look at the order."""

    def __init__(self, reply: Callable[[Request], str]) -> None:
        self._reply, self._lock = reply, threading.Lock()
        self.questions: list[str] = []

    def __call__(self, request: Request) -> str:
        with self._lock:
            self.questions.append(question(request))
        return self._reply(request)

"""The eleven step names are the same everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import redstart
from redstart.cli.options import LevelName, ReflectName, StepName
from redstart.cli.verify import RequirementName
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import Attempt, Level, Mode, Step
from redstart.core.verification import ProofRequirement
from redstart.flow.edges import as_mermaid
from redstart.flow.loop import STEPS
from redstart.flow.modes import MODES
from redstart.toolkit.prompts.render import list_questions

WORDS = ["reproduce", "plan", "retrieve", "audit", "patch", "apply", "check", "test", "reflect", "remember", "decide"]
SOURCE = Path(redstart.__file__).parent


def test_words_match_the_steps():
    assert [step.value for step in Step] == WORDS


def test_each_word_is_a_step_module_with_a_function_of_that_name():
    assert sorted(path.stem for path in (SOURCE / "steps").glob("[!_]*")) == sorted(WORDS)
    for step, function in STEPS.items():
        assert function.__name__ == step.value
        assert function.__module__ == f"redstart.steps.{step.value}"


def test_each_word_is_a_field_of_an_attempt():
    assert [name for name in Attempt.model_fields if name not in ("number", "entry")] == WORDS


def test_each_word_is_a_node_of_the_graph():
    drawing = as_mermaid(Mode.fix)
    assert all(f"{word}({word})" in drawing for word in WORDS)


def test_each_word_is_a_value_of_stop_after():
    assert [name.value for name in StepName] == WORDS
    assert [name.value for name in RequirementName] == [requirement.value for requirement in ProofRequirement]
    assert [name.value for name in LevelName] == [level.value for level in Level]
    assert [name.value for name in ReflectName] == [policy.value for policy in ReflectionPolicy]


def test_each_question_is_named_after_its_step():
    assert set(list_questions()) <= set(WORDS)
    for name in list_questions():
        text = (SOURCE / "toolkit" / "prompts" / "questions" / f"{name}.md").read_text()
        assert text.startswith(f"redstart question: {name}\n")
        step = SOURCE / "steps" / name
        files = sorted(step.glob("*.py")) if step.is_dir() else [step.with_suffix(".py")]
        assert any(f'question="{name}"' in file.read_text() for file in files)


def test_every_mode_has_a_step_list_that_ends_with_decide():
    assert set(MODES) == set(Mode)
    assert all(row[-1] is Step.decide and len(set(row)) == len(row) for row in MODES.values())


def test_reference_loop_stays_short():
    tree = ast.parse((SOURCE / "flow" / "loop.py").read_text())
    (loop,) = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef)]
    assert loop.end_lineno is not None
    assert loop.end_lineno - loop.lineno < 40

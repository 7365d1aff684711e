"""The part of a spec that belongs to one mode, and specs as the previous version stored them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from redstart.app.show import state_document
from redstart.core.change import Snapshot
from redstart.core.finding import Scan
from redstart.core.run import RunSpec
from redstart.core.tasks import (
    TASKS,
    AuditTask,
    CreateTask,
    FixTask,
    ImproveTask,
    Mode,
    upgrade_flat_spec,
)
from redstart.core.wishes import Metric, ProgramKind
from redstart.testing.states import spec, state

FLAT = [json.loads(line) for line in (Path(__file__).parent / "flat_specs.jsonl").read_text().splitlines()]
BASE = Snapshot(tree="a" * 40, base="a" * 40, pack="b" * 64)
WANTED = {
    Mode.fix: FixTask(targets=("tests/test_cart.py::test_total",), keyword="total", issue=True),
    Mode.create: CreateTask(
        kind=ProgramKind.web_app,
        offers=("hypothesis",),
        own_tests=("tests/test_shop.py",),
        test_cpu=5,
        whole="a CSV sorter",
        criteria=("sort([2, 1]) is [1, 2]",),
    ),
    Mode.improve: ImproveTask(
        cycles=3,
        pause=1.5,
        metric=Metric(command=("wc", "-l"), start=BASE),
        before=("cycle 1, kept: feature: thing 1",),
        proven=True,
    ),
    Mode.audit: AuditTask(scan=Scan(paths=("shop",), review=True)),
}


def test_there_is_a_stored_document_of_every_mode() -> None:
    assert [document["mode"] for document in FLAT] == list(Mode) == list(TASKS)


@pytest.mark.parametrize("document", FLAT, ids=list(Mode))
def test_a_spec_of_the_version_before_is_read(document: dict[str, object]) -> None:
    found = RunSpec.model_validate(document)
    assert found.task == WANTED[found.mode]
    assert (found.mode, found.goal, found.errand) == (document["mode"], document["goal"], document["errand"])
    assert RunSpec.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("document", FLAT, ids=list(Mode))
def test_a_shown_run_keeps_every_key_of_the_version_before(document: dict[str, object]) -> None:
    asked = RunSpec.model_validate(document)
    shown = state_document(state(spec=asked))["spec"]
    assert {"test_cpu": 0, **document}.items() <= shown.items()
    assert RunSpec.model_validate(shown) == asked


def test_a_document_with_a_task_is_left_as_it_is() -> None:
    document = {"task": {"mode": "fix"}, "goal": "mend it"}
    assert upgrade_flat_spec(document) == document


def test_a_field_of_another_mode_is_not_taken_over() -> None:
    assert upgrade_flat_spec({"mode": "improve", "issue": True, "cycles": 2, "goal": ""}) == {
        "task": {"mode": "improve", "cycles": 2},
        "goal": "",
    }


def test_a_misspelt_field_and_an_unknown_mode_are_refused() -> None:
    with pytest.raises(ValidationError, match="cycle_count"):
        spec(mode="improve", cycle_count=2)
    with pytest.raises(ValidationError, match="dance"):
        spec(mode="dance")


def test_the_part_of_another_mode_cannot_be_had() -> None:
    with pytest.raises(TypeError, match="a run of mode fix has no CreateTask"):
        spec().task_of(CreateTask)

"""The part of a spec that belongs to one mode, and specs as the previous version stored them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from redstart.app.show import build_state_document
from redstart.core.change import Snapshot
from redstart.core.finding import Scan
from redstart.core.run import RunSpec
from redstart.core.run_preferences import Metric, ProgramKind
from redstart.core.tasks import (
    TASKS,
    AuditTask,
    CreateTask,
    FixTask,
    ImproveTask,
    Mode,
    upgrade_flat_spec,
)
from redstart.testing.states import make_spec, make_state

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


def test_every_mode_has_a_stored_document() -> None:
    assert [document["mode"] for document in FLAT] == list(Mode) == list(TASKS)


@pytest.mark.parametrize("document", FLAT, ids=list(Mode))
def test_spec_of_the_previous_version_can_be_read(document: dict[str, object]) -> None:
    run_spec = RunSpec.model_validate(document)
    assert run_spec.task == WANTED[run_spec.mode]
    assert (run_spec.mode, run_spec.goal, run_spec.errand) == (document["mode"], document["goal"], document["errand"])
    assert RunSpec.model_validate_json(run_spec.model_dump_json()) == run_spec


@pytest.mark.parametrize("document", FLAT, ids=list(Mode))
def test_shown_run_keeps_every_key_of_the_previous_version(document: dict[str, object]) -> None:
    run_spec = RunSpec.model_validate(document)
    shown_spec = build_state_document(make_state(spec=run_spec))["spec"]
    assert {"test_cpu": 0, **document}.items() <= shown_spec.items()
    assert RunSpec.model_validate(shown_spec) == run_spec


def test_document_with_a_task_is_unchanged() -> None:
    document = {"task": {"mode": "fix"}, "goal": "mend it"}
    assert upgrade_flat_spec(document) == document


def test_field_of_another_mode_is_dropped() -> None:
    assert upgrade_flat_spec({"mode": "improve", "issue": True, "cycles": 2, "goal": ""}) == {
        "task": {"mode": "improve", "cycles": 2},
        "goal": "",
    }


def test_misspelled_field_and_unknown_mode_are_rejected() -> None:
    with pytest.raises(ValidationError, match="cycle_count"):
        make_spec(mode="improve", cycle_count=2)
    with pytest.raises(ValidationError, match="dance"):
        make_spec(mode="dance")


def test_task_of_another_mode_is_unavailable() -> None:
    with pytest.raises(TypeError, match="a run of mode fix has no CreateTask"):
        make_spec().get_task(CreateTask)

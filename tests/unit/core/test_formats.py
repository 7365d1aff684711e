"""Stored data of other versions: older data is upgraded; newer data is read as far as possible or rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from redstart.core.errors import NewerFormat
from redstart.core.events import Event
from redstart.core.formats import STATE, read, to_current_status
from redstart.core.run import Result, RunState
from redstart.core.run_options import RunOptions
from redstart.evals.outcome import EvaluationPlan
from redstart.testing.states import make_event, make_spec, make_state


def make_stored_run(**changes: object) -> dict[str, Any]:
    return {**json.loads(make_state(spec=make_spec(goal="mend it")).model_dump_json()), **changes}


def without_versions(data: dict[str, Any]) -> dict[str, Any]:
    stripped = {name: value for name, value in data.items() if name != "format"}
    return {**stripped, "spec": {name: value for name, value in stripped["spec"].items() if name != "format"}}


def test_state_stored_by_this_version_can_be_read_back():
    assert read(RunState, json.dumps(make_stored_run())) == make_state(spec=make_spec(goal="mend it"))


def test_data_without_a_version_is_read_as_the_previous_version():
    assert read(RunState, json.dumps(without_versions(make_stored_run()))) == make_state(spec=make_spec(goal="mend it"))


@pytest.mark.parametrize(
    ("status", "result", "today"),
    [
        ("running", None, "running"),
        ("paused", None, "paused"),
        ("paused", "needs_human", "needs_input"),
        ("ended", "verified", "finished"),
    ],
)
def test_statuses_of_the_previous_version_map_to_current_names(status, result, today):
    assert to_current_status(status, result) == today
    run = read(RunState, json.dumps(without_versions(make_stored_run(status=status, result=result))))
    assert (run.status.value, run.result) == (today, Result(result) if result else None)


def test_iterations_of_the_previous_version_become_attempts():
    old = without_versions(make_stored_run())
    old["spec"]["limits"]["iterations"] = old["spec"]["limits"].pop("attempts") + 2
    child = {"number": 1, "mode": "improve", "base": old["base"], "limits": {"iterations": 3}}
    old["now"]["decide"] = {"action": "spawn", "reason": "a cycle begins", "errands": [child]}
    run = read(RunState, json.dumps(old))
    assert run.spec.limits.attempts == make_state().spec.limits.attempts + 2
    assert run.now.decide is not None
    assert run.now.decide.errands[0].limits.attempts == 3
    with pytest.raises(ValidationError, match="iterations"):
        read(RunState, json.dumps({**old, "format": STATE.version}))
    plan = {"name": "a", "source": "own", "tasks": "", "model": "m", "limits": {"iterations": 4}}
    assert read(EvaluationPlan, json.dumps(plan)).limits.attempts == 4


def test_unknown_field_of_this_version_is_rejected():
    with pytest.raises(ValidationError, match="colour"):
        read(RunState, json.dumps(make_stored_run(colour="red")))
    with pytest.raises(ValidationError, match="colour"):
        RunState.model_validate(make_stored_run(colour="red", format="1.1"))


def test_unknown_fields_of_newer_minor_are_kept_only_for_the_run():
    newer_document = make_stored_run(format="1.1", colour="red")
    newer_document["spec"] |= {"format": "1.4", "shade": [1]}
    newer_document["now"]["tint"] = 5
    run = read(RunState, json.dumps(newer_document))
    assert run.model_copy(update={"unread": {}, "spec": run.spec.model_copy(update={"unread": {}})}) == read(
        RunState, json.dumps(make_stored_run())
    )
    saved = run.model_copy(update={"version": 7}).model_dump_json()
    reloaded = read(RunState, saved)
    assert (reloaded.version, reloaded.unread, reloaded.spec.unread) == (7, {"colour": "red"}, {"shade": [1]})


def test_carried_field_returns_to_its_place():
    document = make_stored_run(unread={"reason": "the tests pass", "colour": "red"})
    document.pop("reason")
    run = read(RunState, json.dumps(document))
    assert (run.reason, run.unread) == ("the tests pass", {"colour": "red"})


@pytest.mark.parametrize("found", ["2.0", "11.3", "next"])
def test_run_of_a_newer_major_is_rejected(found):
    with pytest.raises(
        NewerFormat, match=rf"run run-1 was stored by a newer version .* format is {found}"
    ) as error_info:
        read(RunState, json.dumps({"format": found, "run_id": "run-1"}))
    assert error_info.value.remedy == "upgrade redstart"


def test_spec_of_a_newer_major_is_rejected():
    newer_document = make_stored_run()
    newer_document["spec"]["format"] = "2.0"
    with pytest.raises(NewerFormat, match="this spec"):
        read(RunState, json.dumps(newer_document))


def test_events_and_options_may_have_new_fields():
    new_event = make_event()
    assert read(Event, json.dumps({**json.loads(new_event.model_dump_json()), "mood": "calm"})) == new_event
    assert read(RunOptions, '{"engine": "inline", "colour": "red"}') == RunOptions(engine="inline")
    with pytest.raises(NewerFormat):
        read(Event, json.dumps({**json.loads(new_event.model_dump_json()), "v": 2}))


def test_state_versions_take_few_bytes():
    plain_size = len(make_state().model_dump_json())
    assert (
        plain_size
        - len(json.dumps(without_versions(json.loads(make_state().model_dump_json())), separators=(",", ":")))
        == 30
    )

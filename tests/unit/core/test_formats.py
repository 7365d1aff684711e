"""Stored data of other versions: older data is upgraded; newer data is read as far as possible or rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from redstart.core.errors import NewerFormat
from redstart.core.events import Event
from redstart.core.formats import STATE, current_status, read
from redstart.core.run import Result, RunState
from redstart.core.run_options import RunOptions
from redstart.evals.outcome import EvaluationPlan
from redstart.testing.states import event, spec, state


def stored(**over: object) -> dict[str, Any]:
    return {**json.loads(state(spec=spec(goal="mend it")).model_dump_json()), **over}


def without_versions(data: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in data.items() if name != "format"}
    return {**plain, "spec": {name: value for name, value in plain["spec"].items() if name != "format"}}


def test_what_this_version_stores_is_read_as_it_was():
    assert read(RunState, json.dumps(stored())) == state(spec=spec(goal="mend it"))


def test_data_without_a_version_is_of_the_version_before():
    assert read(RunState, json.dumps(without_versions(stored()))) == state(spec=spec(goal="mend it"))


@pytest.mark.parametrize(
    ("status", "result", "today"),
    [
        ("running", None, "running"),
        ("paused", None, "paused"),
        ("paused", "needs_human", "needs_input"),
        ("ended", "verified", "finished"),
    ],
)
def test_statuses_of_the_version_before_have_their_names_of_today(status, result, today):
    assert current_status(status, result) == today
    run = read(RunState, json.dumps(without_versions(stored(status=status, result=result))))
    assert (run.status.value, run.result) == (today, Result(result) if result else None)


def test_limits_of_the_version_before_count_attempts_as_iterations():
    old = without_versions(stored())
    old["spec"]["limits"]["iterations"] = old["spec"]["limits"].pop("attempts") + 2
    child = {"number": 1, "mode": "improve", "base": old["base"], "limits": {"iterations": 3}}
    old["now"]["decide"] = {"action": "spawn", "reason": "a cycle begins", "errands": [child]}
    run = read(RunState, json.dumps(old))
    assert run.spec.limits.attempts == state().spec.limits.attempts + 2
    assert run.now.decide is not None
    assert run.now.decide.errands[0].limits.attempts == 3
    with pytest.raises(ValidationError, match="iterations"):
        read(RunState, json.dumps({**old, "format": STATE.version}))
    plan = {"name": "a", "source": "own", "tasks": "", "model": "m", "limits": {"iterations": 4}}
    assert read(EvaluationPlan, json.dumps(plan)).limits.attempts == 4


def test_an_unknown_field_of_this_version_is_refused():
    with pytest.raises(ValidationError, match="colour"):
        read(RunState, json.dumps(stored(colour="red")))
    with pytest.raises(ValidationError, match="colour"):
        RunState.model_validate(stored(colour="red", format="1.1"))


def test_unknown_fields_of_a_newer_minor_are_ignored_and_those_of_the_whole_run_are_carried_along():
    newer = stored(format="1.1", colour="red")
    newer["spec"] |= {"format": "1.4", "shade": [1]}
    newer["now"]["tint"] = 5
    run = read(RunState, json.dumps(newer))
    assert run.model_copy(update={"unread": {}, "spec": run.spec.model_copy(update={"unread": {}})}) == read(
        RunState, json.dumps(stored())
    )
    committed = run.model_copy(update={"version": 7}).model_dump_json()
    again = read(RunState, committed)
    assert (again.version, again.unread, again.spec.unread) == (7, {"colour": "red"}, {"shade": [1]})


def test_a_field_that_was_carried_along_comes_back_to_its_place():
    carried = stored(unread={"reason": "the tests pass", "colour": "red"})
    carried.pop("reason")
    run = read(RunState, json.dumps(carried))
    assert (run.reason, run.unread) == ("the tests pass", {"colour": "red"})


@pytest.mark.parametrize("found", ["2.0", "11.3", "next"])
def test_a_run_of_a_newer_major_is_declined(found):
    with pytest.raises(NewerFormat, match=rf"run run-1 was stored by a newer version .* format is {found}") as raised:
        read(RunState, json.dumps({"format": found, "run_id": "run-1"}))
    assert raised.value.remedy == "upgrade redstart"


def test_a_spec_of_a_newer_major_is_declined_too():
    newer = stored()
    newer["spec"]["format"] = "2.0"
    with pytest.raises(NewerFormat, match="this spec"):
        read(RunState, json.dumps(newer))


def test_events_and_options_may_have_new_fields():
    told = event()
    assert read(Event, json.dumps({**json.loads(told.model_dump_json()), "mood": "calm"})) == told
    assert read(RunOptions, '{"engine": "inline", "colour": "red"}') == RunOptions(engine="inline")
    with pytest.raises(NewerFormat):
        read(Event, json.dumps({**json.loads(told.model_dump_json()), "v": 2}))


def test_the_versions_of_a_state_take_few_bytes():
    plain = len(state().model_dump_json())
    assert plain - len(json.dumps(without_versions(json.loads(state().model_dump_json())), separators=(",", ":"))) == 30

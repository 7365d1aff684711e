"""Flags of earlier versions: accepted everywhere, shown nowhere."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from redstart.cli.main import app
from redstart.cli.options import OLD_NAMES, current_name


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        (("fix",), "--max-iters", "--max-attempts"),
        (("create",), "--max-iters", "--max-attempts"),
        (("resume",), "--max-iters", "--max-attempts"),
        (("runs", "fork"), "--max-iters", "--max-attempts"),
        (("fix",), "--looks", "--max-tool-calls"),
        (("eval", "run"), "--looks", "--max-tool-calls"),
    ],
)
def test_an_old_flag_is_taken_as_the_new_one_and_help_shows_the_new_one(command, old, new):
    refused = CliRunner().invoke(app, [*command, old, "-1"])
    assert (refused.exit_code, f"'{new}'" in refused.output) == (2, True), refused.output
    shown = CliRunner().invoke(app, [*command, "--help"]).output
    assert (new in shown, old in shown) == (True, False)


def test_improve_counts_cycles_and_takes_the_old_flags_for_that():
    for old in ("--max-iters", "--max-attempts"):
        refused = CliRunner().invoke(app, ["improve", old, "-1"])
        assert (refused.exit_code, "'--max-attempts'" in refused.output) == (2, True), refused.output
    shown = CliRunner().invoke(app, ["improve", "--help"]).output
    assert "--max-cycles" in shown
    assert "--no-limit" in shown
    assert not [old for old in ("--max-iters", "--max-attempts", "--no-cap") if old in shown]


def test_every_other_flag_keeps_its_name():
    assert current_name("max-usd") == "max-usd"
    assert not OLD_NAMES.keys() & set(OLD_NAMES.values())


def test_a_network_for_the_sandbox_is_no_option() -> None:
    refused = CliRunner().invoke(app, ["fix", "--sandbox-network", "none"])
    assert (refused.exit_code, "No such option: --sandbox-network" in refused.output) == (2, True)

"""Flags of earlier versions: accepted everywhere, shown nowhere."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from redstart.cli.main import app
from redstart.cli.options import OLD_NAMES, to_current_name


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
def test_old_flag_still_works_and_help_shows_only_the_new_flag(command, old, new):
    refused = CliRunner().invoke(app, [*command, old, "-1"])
    assert (refused.exit_code, f"'{new}'" in refused.output) == (2, True), refused.output
    output = CliRunner().invoke(app, [*command, "--help"]).output
    assert (new in output, old in output) == (True, False)


def test_improve_accepts_the_old_flags_for_cycles():
    for old in ("--max-iters", "--max-attempts"):
        refused = CliRunner().invoke(app, ["improve", old, "-1"])
        assert (refused.exit_code, "'--max-attempts'" in refused.output) == (2, True), refused.output
    output = CliRunner().invoke(app, ["improve", "--help"]).output
    assert "--max-cycles" in output
    assert "--no-limit" in output
    assert not [old for old in ("--max-iters", "--max-attempts", "--no-cap") if old in output]


def test_every_other_flag_keeps_its_name():
    assert to_current_name("max-usd") == "max-usd"
    assert not OLD_NAMES.keys() & set(OLD_NAMES.values())


def test_sandbox_network_is_no_longer_an_option() -> None:
    refused = CliRunner().invoke(app, ["fix", "--sandbox-network", "none"])
    assert (refused.exit_code, "No such option: --sandbox-network" in refused.output) == (2, True)

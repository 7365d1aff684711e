"""A wrong test is changed only with a person's approval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.server import Reply, ScriptedServer, Wire

CODE = '"""Prices are in cents."""\n\n\ndef price(cents):\n    return f"{cents} cents"\n'
TESTS = (
    'from shop import price\n\n\ndef test_price():\n    assert price(5) == "5 euros"\n\n\n'
    'def test_none():\n    assert price(0) == "0 cents"\n'
)
EDIT = (
    'test_shop.py\n<<<<<<< SEARCH\n    assert price(5) == "5 euros"\n=======\n'
    '    assert price(5) == "5 cents"\n>>>>>>> REPLACE\n'
)
OPEN = f"WHY: the test contradicts the module's docstring\nTEST CHANGE: prices are in cents, says the module\n\n{EDIT}"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(CODE)
    (folder / "test_shop.py").write_text(TESTS)
    return folder


@pytest.fixture
def server(user):
    with ScriptedServer(lambda request: Reply(OPEN)) as running:
        user.uses(running, Wire.openai)
        yield running


def test_changed_test_is_shown_side_by_side_and_accepted_on_approval(user, repo, server):
    result = user.redstart("fix", repo)
    assert result.code == 7, result.out + result.err
    assert "NEEDS INPUT  the patch changes test_shop.py. The model's reason: prices are in cents" in result.out
    (line,) = [line for line in result.out.splitlines() if "│" in line and "euros" in line]
    assert line.index("5 euros") < line.index("│") < line.index("5 cents")
    assert user.redstart("resume", cwd=repo).code == 7, "asked, and not answered"
    accepted = user.redstart("resume", "--accept", cwd=repo)
    assert (accepted.code, "GREEN  you accepted the patch" in accepted.out) == (0, True), accepted.out + accepted.err
    assert (repo / "test_shop.py").read_text() == TESTS
    assert user.redstart("apply", cwd=repo).code == 0
    assert "5 cents" in (repo / "test_shop.py").read_text()
    assert user.redstart("runs", "replay", cwd=repo).code == 0
    assert user.redstart("memory", "list", "--json").out == "", "a patch that a person answers for leaves no card"


def test_fix_card_records_that_the_run_asked_a_person(user, repo):
    fixes = (
        'WHY: a price is in euros\n\nshop.py\n<<<<<<< SEARCH\n    return f"{cents} cents"\n=======\n'
        '    return f"{cents} euros" if cents else "0 cents"\n>>>>>>> REPLACE\n'
    )
    with ScriptedServer(lambda request: Reply(fixes if "the test is right" in request.text else OPEN)) as running:
        user.uses(running, Wire.openai)
        assert user.redstart("fix", repo).code == 7
        result = user.redstart("resume", "--reject", "--say", "the test is right", cwd=repo)
        assert (result.code, "GREEN" in result.out) == (0, True), result.out + result.err
        card = json.loads(user.redstart("memory", "list", "--json").out.splitlines()[0])
        assert card["card"]["asked"]
        assert "shown, asked" in user.redstart("memory", "list").out
        output = user.redstart("memory", "show", card["id"]).out
        assert "  asked        the run asked a person before its tests passed\n" in output
        assert user.redstart("fix", repo).code == 7
    prompts = [request.text for request in running.requests]
    assert any("fixed before (its run asked a person, so trust it less): " in text for text in prompts)


@pytest.mark.soak
def test_rejection_goes_back_to_the_model(user, repo, server):
    assert user.redstart("fix", repo, "--max-iters", "2").code == 7
    request_count = len(server.requests)
    result = user.redstart("resume", "--reject", "--say", "the test is right", cwd=repo)
    assert result.code == 7, "the obedient model proposes the same again"
    assert "you rejected the patch: the test is right" in result.out
    assert len(server.requests) == request_count + 1
    assert user.redstart("resume", "--reject", cwd=repo).code == 1


def test_undeclared_test_change_is_refused(user, repo):
    with ScriptedServer(lambda request: Reply(f"WHY: x\n\n{EDIT}")) as running:
        user.uses(running, Wire.openai)
        result = user.redstart("fix", repo, "--max-iters", "1")
    assert result.code == 6, result.out + result.err


@pytest.mark.soak
def test_declared_test_change_does_not_cover_the_configuration(user, repo):
    edit = "conftest.py\n<<<<<<< SEARCH\n=======\nimport shop\n>>>>>>> REPLACE\n"
    answer = f"WHY: x\nTEST CHANGE: the tests need it\n\n{edit}"
    with ScriptedServer(lambda request: Reply(answer)) as running:
        user.uses(running, Wire.openai)
        result = user.redstart("fix", repo, "--max-iters", "1")
    assert result.code == 6, result.out + result.err

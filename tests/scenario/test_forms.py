"""A model is asked for the edit format in which its edits applied best in earlier runs."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from redstart.toolkit.patching.reading.formats import ENOUGH
from support.scenarios import CARD, Scenario, question
from support.server import Request, ScriptedServer, Wire

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
DIFFS = "+++ b/path/to/file.py"


@pytest.mark.soak
def test_a_model_whose_diffs_fit_is_asked_for_diffs_in_a_later_run(user, tmp_path, repo_of):
    many, pager = tmp_path / "many", repo_of(SCENARIO.name)
    many.mkdir()
    diffs: list[str] = []
    for number in range(ENOUGH):
        name, wrong, right = f"part_{number}.py", f"VALUE = -{number + 1}\n", f"VALUE = {number + 1}\n"
        (many / name).write_text(wrong)
        (many / f"test_{name}").write_text(
            f"import part_{number}\n\n\ndef test_it():\n    assert {right[8:].strip()} == part_{number}.VALUE\n"
        )
        diffs += unified_diff([wrong], [right], f"a/{name}", f"b/{name}")
    answer = f"WHY: the sign\n\n```diff\n{''.join(diffs)}```\n"
    patches: list[bool] = []

    def reply(request: Request) -> str:
        if question(request) == "patch":
            patches.append(DIFFS in request.text)
            return answer if "part_0" in request.text else SCENARIO.right
        return CARD

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        for repo in (many, pager):
            ran = user.redstart("fix", repo)
            assert ran.code == 0, ran.out + ran.err
    assert patches == [False, True]
    for repo in (many, pager):
        assert user.redstart("runs", "replay", cwd=repo).code == 0

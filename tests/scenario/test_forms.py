"""A model is asked for the edit format in which its edits applied best in earlier runs."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from redstart.toolkit.patching.reading.formats import MIN_EDITS
from support.scenarios import CARD, Scenario, parse_question
from support.server import Request, ScriptedServer, Wire

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
DIFFS = "+++ b/path/to/file.py"


@pytest.mark.soak
def test_model_with_good_diffs_is_asked_for_diffs_in_later_runs(user, tmp_path, repo_of):
    large_repo, pager = tmp_path / "many", repo_of(SCENARIO.name)
    large_repo.mkdir()
    diffs: list[str] = []
    for number in range(MIN_EDITS):
        name, wrong_text, right_text = f"part_{number}.py", f"VALUE = -{number + 1}\n", f"VALUE = {number + 1}\n"
        (large_repo / name).write_text(wrong_text)
        (large_repo / f"test_{name}").write_text(
            f"import part_{number}\n\n\ndef test_it():\n    assert {right_text[8:].strip()} == part_{number}.VALUE\n"
        )
        diffs += unified_diff([wrong_text], [right_text], f"a/{name}", f"b/{name}")
    answer = f"WHY: the sign\n\n```diff\n{''.join(diffs)}```\n"
    patches: list[bool] = []

    def reply(request: Request) -> str:
        if parse_question(request) == "patch":
            patches.append(DIFFS in request.text)
            return answer if "part_0" in request.text else SCENARIO.right
        return CARD

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        for repo in (large_repo, pager):
            result = user.redstart("fix", repo)
            assert result.code == 0, result.out + result.err
    assert patches == [False, True]
    for repo in (large_repo, pager):
        assert user.redstart("runs", "replay", cwd=repo).code == 0

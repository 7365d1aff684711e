"""The statement about a verification, and the comparison with a repeated one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.app.verify.attestation import PREDICATE, as_statement, list_differences, read_statement, repeat_request
from redstart.app.verify.verify import VerifyRequest
from redstart.core.errors import ConfigError
from redstart.core.run import Level
from redstart.core.verification import Claim, ClaimKind, CodeVersion, ProofRequirement, Verification, VerificationEnd

RESULT = Verification(
    redstart="0.1.0",
    repo="shop",
    end=VerificationEnd.weakened,
    exit_code=7,
    reason="1 test demands less than before",
    require=ProofRequirement.proof,
    level=Level.strict,
    base=CodeVersion(name="main", commit="b" * 40, tree="1"),
    head=CodeVersion(name="feature", commit="c" * 40, tree="2"),
    claims=(
        Claim(test="a", kind=ClaimKind.proven),
        Claim(test="b", kind=ClaimKind.weakened),
        Claim(test="c", kind=ClaimKind.removed, accepted="Ann"),
        Claim(test="d", kind=ClaimKind.flaky),
    ),
)


def test_statement_names_the_tree_and_each_test(tmp_path: Path):
    statement = json.loads(as_statement(RESULT))
    predicate = statement["predicate"]
    assert statement["subject"] == [{"name": "shop", "digest": {"gitTree": "2", "gitCommit": "c" * 40}}]
    assert (statement["predicateType"], predicate["result"]) == (PREDICATE, "FAILED")
    assert [predicate[f"{name}Tests"] for name in ("passed", "warned", "failed")] == [["a"], ["c", "d"], ["b"]]
    path = tmp_path / "statement.json"
    path.write_text(as_statement(RESULT))
    assert read_statement(path) == RESULT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"predicate": {"verification": {}}}'])
def test_other_files_are_refused(text: str, tmp_path: Path):
    path = tmp_path / "statement.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is not a statement"):
        read_statement(path)


def test_repetition_uses_the_commits_and_what_was_accepted():
    request = repeat_request(RESULT, VerifyRequest())
    assert (request.revisions.base, request.revisions.head) == ("b" * 40, "c" * 40)
    assert (request.level, request.require, request.accept) == (Level.strict, ProofRequirement.proof, ("c",))


def test_differences_name_the_files_the_end_and_the_tests():
    claims = (Claim(test="a", kind=ClaimKind.green_without), *RESULT.claims[1:3])
    head = CodeVersion(name="feature", tree="3")
    other = RESULT.model_copy(update={"claims": claims, "head": head, "end": VerificationEnd.worse})
    assert list_differences(RESULT, RESULT) == []
    assert list_differences(RESULT, other) == [
        "the files of the head differ",
        "the end is worse, and weakened was claimed",
        "a is green_without, and proven was claimed",
    ]

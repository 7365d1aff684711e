"""The result of a verification as an in-toto statement with the predicate `test-result`. It is not signed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from redstart.app.verify.revisions import RevisionRequest
from redstart.app.verify.verify import VerifyRequest
from redstart.core.errors import ConfigError
from redstart.core.verification import ASKING, Claim, ClaimKind, CodeVersion, Verification, VerificationEnd

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
EVIDENCE = "verification"
"""The field of the predicate with the whole result. Readers of the predicate ignore fields that they do not know."""
_RESULTS = {VerificationEnd.verified: "PASSED", VerificationEnd.unproven: "WARNED"}
_FAILED = (*ASKING, ClaimKind.hidden, ClaimKind.broken, ClaimKind.environment)
LARGEST = 50_000_000


def as_statement(result: Verification) -> str:
    """Render the statement about the files of the head."""
    passed = [claim for claim in result.claims if claim.is_proof]
    failed = [claim for claim in result.claims if claim.kind in _FAILED and not claim.accepted]
    warned = [claim for claim in result.claims if claim not in passed and claim not in failed]
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": result.repo, "digest": _get_digests(result.head)}],
        "predicateType": PREDICATE,
        "predicate": {
            "result": _RESULTS.get(result.end, "FAILED"),
            "configuration": [{"name": "base", "digest": _get_digests(result.base)}],
            "passedTests": _list_tests(passed),
            "warnedTests": _list_tests(warned),
            "failedTests": _list_tests(failed),
            EVIDENCE: result.model_dump(mode="json"),
        },
    }
    return json.dumps(statement, indent=2) + "\n"


def _get_digests(version: CodeVersion) -> dict[str, str]:
    return {"gitTree": version.tree, **({"gitCommit": version.commit} if version.commit else {})}


def _list_tests(claims: Iterable[Claim]) -> list[str]:
    return [claim.test for claim in claims]


def read_statement(path: Path) -> Verification:
    """Read the result from a statement. Raises `ConfigError` if the file is none that Redstart wrote."""
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} is larger than {LARGEST / 1e6:.0f} MB", remedy="give one statement")
        statement = json.loads(path.read_bytes())
        predicate = cast("dict[str, object]", statement["predicate"])
        return Verification.model_validate(predicate[EVIDENCE], strict=False)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        problem = f"{path} is not a statement of redstart verify"
        raise ConfigError(problem, remedy="write one with: redstart verify --attest FILE") from error


def repeat_request(claimed: Verification, request: VerifyRequest) -> VerifyRequest:
    """Return the request that repeats a verification: its commits and its level in place of those of `request`.

    A head without a commit (a patch, or the working tree) is what `request` names.
    """
    revisions = request.revisions
    head = claimed.head.commit
    return request._replace(
        revisions=RevisionRequest(claimed.base.commit, head) if head else revisions._replace(base=claimed.base.commit),
        require=claimed.require,
        level=claimed.level,
        reuses_base=False,
        base_junit=None,
        accept=tuple(claim.test for claim in claimed.claims if claim.accepted),
    )


def list_differences(claimed: Verification, repeated: Verification) -> list[str]:
    """List what the repeated verification shows otherwise, one sentence each. Flaky tests are not compared."""
    sides = (("base", claimed.base, repeated.base), ("head", claimed.head, repeated.head))
    differences = [f"the files of the {name} differ" for name, old, new in sides if old.tree != new.tree]
    if claimed.end is not repeated.end:
        differences.append(f"the end is {repeated.end.value}, and {claimed.end.value} was claimed")
    old, new = ({claim.test: claim.kind for claim in result.claims} for result in (claimed, repeated))
    for test in sorted(old.keys() | new.keys()):
        kinds = (old.get(test), new.get(test))
        if kinds[0] is not kinds[1] and ClaimKind.flaky not in kinds:
            names = ["unaffected" if kind is None else kind.value for kind in kinds]
            differences.append(f"{test} is {names[1]}, and {names[0]} was claimed")
    return differences

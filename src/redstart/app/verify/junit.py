"""The result of a verification as JUnit XML, for the test report of a CI system."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from redstart.app.verify.kinds import KINDS
from redstart.core.verification import ASKING, Claim, ClaimKind, Verification

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILING = frozenset((ClaimKind.broken, ClaimKind.hidden, *ASKING))


def as_junit(result: Verification) -> str:
    """Render the verdict and each test that the change concerns as a test case. Tests that count against it fail."""
    cases = [_render_verdict(result), *(_render_claim(claim) for claim in result.claims)]
    failures = sum(case.find("failure") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    suite = ElementTree.Element(
        "testsuite", name="redstart verify", tests=str(len(cases)), failures=str(failures), errors=str(errors)
    )
    suite.extend(cases)
    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, encoding="unicode")}\n'


def _render_verdict(result: Verification) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="redstart verify", name="verdict")
    if result.exit_code:
        _add(case, "failure", f"{result.end.value}: {result.reason}", result.remedy)
    return case


def _render_claim(claim: Claim) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="redstart verify", name=_clean(claim.test))
    kind = KINDS[claim.kind]
    text = f"{kind.title}: {kind.meaning}"
    if claim.kind in _FAILING and not claim.accepted:
        _add(case, "failure", text, claim.note)
    elif claim.kind is ClaimKind.environment:
        _add(case, "error", text, claim.note)
    else:
        output = ElementTree.SubElement(case, "system-out")
        output.text = _clean("\n".join(filter(None, (text, claim.note))))
    return case


def _add(case: ElementTree.Element, tag: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=_clean(message)).text = _clean(text)


def _clean(text: str) -> str:
    """Replace the characters that XML cannot contain."""
    return _NOT_XML.sub("\ufffd", text)

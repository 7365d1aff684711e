"""Values do not change a failure fingerprint; another attribute, exception or function does."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redstart.toolkit.learning.signature import MESSAGE_LIMIT
from support.sample import sample_parameters
from support.signatures import LONG, sign_failure

unhurried = settings(deadline=None, max_examples=30)

VALUES = {
    "address": st.integers(0, 2**64 - 1).map(hex),
    "uuid": st.uuids().map(str),
    "hash": st.integers(0, 2**160 - 1).map("{:040x}".format).filter(lambda text: any(c.isdigit() for c in text)),
    "integer": st.integers().map(str),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "temporary path": st.from_regex(r"/tmp/[a-z0-9_-]{1,20}/[a-z]{1,9}\.txt", fullmatch=True),
    "home": st.from_regex(r"/home/[a-z0-9_-]{1,20}/notes\.txt", fullmatch=True),
    "time": st.datetimes().map(lambda when: when.replace(microsecond=0).isoformat()),
}
TEMPLATES = [
    "ValueError: bad {} here",
    "ValueError: <Cart at {}> has no 'total'",
    "ValueError: ({}, 'k')",
    "assert {} == f",
]


@pytest.mark.parametrize("kind", sorted(VALUES))
@pytest.mark.parametrize("template", sample_parameters(TEMPLATES, 1))
@unhurried
@given(data=st.data())
def test_different_values_of_one_kind_do_not_change_the_signature(
    kind: str, template: str, data: st.DataObject
) -> None:
    first_value, other_value = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    assert sign_failure(template.format(first_value), LONG).key == sign_failure(template.format(other_value), LONG).key


NAMES = st.from_regex(r"[a-z][a-z_]{2,12}", fullmatch=True)


@unhurried
@given(first_name=NAMES, other_name=NAMES)
def test_different_attribute_exception_or_function_is_a_different_bug(first_name: str, other_name: str) -> None:
    assume(first_name != other_name)
    message = "AttributeError: 'Cart' object has no attribute '{}'"
    assert sign_failure(message.format(first_name), LONG).key != sign_failure(message.format(other_name), LONG).key
    kind = "{}Error: bad"
    assert (
        sign_failure(kind.format(first_name.title()), LONG).key
        != sign_failure(kind.format(other_name.title() + "X"), LONG).key
    )
    frame = "src/a.py:3: in {}\nE   ValueError: bad"
    assert (
        sign_failure("ValueError: bad", frame.format(first_name)).key
        != sign_failure("ValueError: bad", frame.format(other_name)).key
    )


@unhurried
@given(message=st.text(max_size=300), detail=st.text(max_size=600))
def test_any_text_has_a_stable_signature(message: str, detail: str) -> None:
    signature = sign_failure(message, detail)
    assert signature == sign_failure(message, detail)
    assert len(signature.message) <= MESSAGE_LIMIT

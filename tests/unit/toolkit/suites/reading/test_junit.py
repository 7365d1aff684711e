from __future__ import annotations

import pytest

from redstart.core.report import Outcome
from redstart.toolkit.languages.python.node_ids import pytest_ids
from redstart.toolkit.suites.reading.junit import DETAIL_LIMIT, MESSAGE_LIMIT, build_dotted_ids, read_cases


def wrap_xml(cases: str) -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
    )


def format_case(file: str, classname: str, name: str, inside: str = "") -> str:
    return f'<testcase classname="{classname}" name="{name}" file="{file}" time="0.5">{inside}</testcase>'


def read_ids(*cases: str) -> list[str]:
    parsed_cases = read_cases(wrap_xml("".join(cases)), pytest_ids)
    assert parsed_cases is not None
    return [item.id for item in parsed_cases]


@pytest.mark.parametrize(
    ("file", "classname", "name", "expected"),
    [
        ("tests/test_a.py", "tests.test_a", "test_x", "tests/test_a.py::test_x"),
        ("tests/test_a.py", "tests.test_a.TestX.TestY", "test_x[a::b]", "tests/test_a.py::TestX::TestY::test_x[a::b]"),
        ("test_a.py", "test_a", "test_x[a/b.c]", "test_a.py::test_x[a/b.c]"),
        ("tests/v1.2/test_a.py", "tests.v1.2.test_a.TestX", "test_x", "tests/v1.2/test_a.py::TestX::test_x"),
        ("tests/test_a.py", "", "tests.test_a", "tests/test_a.py"),
        ("tests/test_a.py", "tests.test_a", "TestX", "tests/test_a.py::TestX"),
        ("docs/index.rst", "docs.index.rst", "index.rst", "docs/index.rst::index.rst"),
        ("src/pkg/mod.py", "src.pkg.mod", "pkg.mod.func", "src/pkg/mod.py::pkg.mod.func"),
        ("../other/tests/test_b.py", "tests.test_b.TestX", "test_x", "tests/test_b.py::TestX::test_x"),
        ("lib/helpers.py", "tests.test_a.TestX", "test_x", "tests/test_a.py::TestX::test_x"),
        ("lib/helpers.py", "tests.test_a", "test_x", "tests/test_a.py::test_x"),
        ("lib/helpers.py", "app.tests.CaseX", "test_x", "app/tests.py::CaseX::test_x"),
        ("lib/helpers.py", "tests.unit.api.TestX", "test_x", "tests/unit/api.py::TestX::test_x"),
    ],
)
def test_node_ids_are_built_from_junit_attributes(file: str, classname: str, name: str, expected: str) -> None:
    assert read_ids(format_case(file, classname, name)) == [expected]


def test_module_of_an_inherited_test_is_inferred_from_its_neighbors() -> None:
    inherited = format_case("tests/base.py", "tests.checks.odd_name.suite", "test_x")
    assert read_ids(format_case("tests/checks/odd_name.py", "tests.checks.odd_name", "test_y"), inherited) == [
        "tests/checks/odd_name.py::test_y",
        "tests/checks/odd_name.py::suite::test_x",
    ]


def test_root_with_a_single_suite_is_read() -> None:
    cases = read_cases(f"<testsuite>{format_case('a.py', 'a', 'test_x')}</testsuite>", pytest_ids)
    assert cases is not None
    assert [(item.id, item.outcome, item.seconds) for item in cases] == [("a.py::test_x", Outcome.passed, 0.5)]


def test_duplicate_test_is_one_case_with_the_worse_outcome() -> None:
    failed = '<failure message="assert 1 == 2">call</failure>'
    errored = '<error message="failed on teardown with &quot;KeyError: 1&quot;">teardown</error>'
    cases = read_cases(
        wrap_xml(format_case("a.py", "a", "t", errored) + format_case("a.py", "a", "t", failed)), pytest_ids
    )
    assert cases is not None
    assert [(item.id, item.outcome, item.message, item.detail) for item in cases] == [
        ("a.py::t", Outcome.failed, "assert 1 == 2", "teardown\n\ncall")
    ]
    assert cases[0].seconds == 1.0


def test_a_skipped_part_does_not_make_a_passed_test_skipped() -> None:
    cases = read_cases(
        wrap_xml(format_case("a.py", "a", "t", '<skipped message="x"/>') + format_case("a.py", "a", "t")), pytest_ids
    )
    assert cases is not None
    assert [item.outcome for item in cases] == [Outcome.passed]


def test_long_texts_are_truncated() -> None:
    failure = f'<failure message="{"m" * 5000}&#10;[truncated; full report in element text]">{"d" * 50_000}</failure>'
    cases = read_cases(wrap_xml(format_case("a.py", "a", "t", failure)), pytest_ids)
    assert cases is not None
    assert (len(cases[0].message.encode()), len(cases[0].detail.encode())) == (MESSAGE_LIMIT, DETAIL_LIMIT)


def test_collection_failure_without_an_error_line_shows_the_last_line() -> None:
    error = '<error message="collection failure">one\ntwo: three\n\n</error>'
    cases = read_cases(wrap_xml(format_case("a.py", "", "a", error)), pytest_ids)
    assert cases is not None
    assert cases[0].message == "two: three"


def test_unittest_ids_are_dotted() -> None:
    cases = read_cases(
        wrap_xml(format_case("t/a.py", "t.a.X", "test_x") + format_case("", "", "t.b")), build_dotted_ids
    )
    assert cases is not None
    assert [item.id for item in cases] == ["t.a.X.test_x", "t.b"]


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not xml",
        "<html></html>",
        "<testsuites><testsuite>",
        '<?xml version="1.0"?>' + BOMB + "<testsuites/>",
        BOMB + "<testsuites>&b;</testsuites>",
        "<testsuites><testsuite><testcase name='x' time='soon'/></testsuite></testsuites>",
        "<testsuite>" * 50_000 + "</testsuite>" * 50_000,
    ],
    ids=["empty", "text", "html", "cut", "doctype", "entities", "time", "deep"],
)
def test_invalid_report_yields_none(text: str) -> None:
    assert read_cases(text, pytest_ids) is None


def test_declared_encoding_cannot_hide_a_document_type() -> None:
    utf7_report = '<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE x+AD4-<testsuites/>'
    assert read_cases(utf7_report, pytest_ids) is None
    cases = read_cases('<?xml version="1.0" encoding="utf-16"?><testsuites/>', pytest_ids)
    assert cases == []


def test_oversized_report_yields_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redstart.toolkit.suites.reading.junit.SIZE_LIMIT", 10)
    assert read_cases("<testsuites/>", pytest_ids) is None


def test_output_of_a_failing_test_is_kept() -> None:
    printed = "<system-out>\ntotal 8\n</system-out><system-err>oops</system-err>"
    cases = read_cases(
        wrap_xml(
            format_case("a.py", "a", "test_red", f'<failure message="no"/>{printed}')
            + format_case("a.py", "a", "test_green", printed)
        ),
        build_dotted_ids,
    )
    assert cases is not None
    assert [(case.id, case.stdout, case.stderr) for case in cases] == [
        ("a.test_red", "total 8", "oops"),
        ("a.test_green", "", ""),
    ]

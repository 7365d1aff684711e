"""How a probe is parsed from an answer, and what is run for it."""

from __future__ import annotations

import time

import pytest

from redstart.core.change import Probe
from redstart.core.run import Suite
from redstart.core.shell import IN, TIGHT, Completed, Environment, ExitCause
from redstart.testing.states import make_case, make_snapshot
from redstart.toolkit.model_tools.probes import (
    LONGEST,
    LONGEST_ANSWER,
    MOST_IDS,
    build_execution,
    describe_outcomes,
    describe_run,
    find_probe,
    fingerprint,
    get_snippet_language,
)

SNIPPET = "from shop import cart\nprint(cart.total())\n"
ID = "tests/test_cart.py::TestCart::test_total[a b-1]"
OTHER = "tests/test_tax.py::test_rate"
PROBES = {
    "a snippet": (f"PROBE:\n```python\n{SNIPPET}```\n", Probe(snippet=SNIPPET)),
    "a snippet after words": (f"WHY: not sure\n\nPROBE: let me see\n\n```\n{SNIPPET}```", Probe(snippet=SNIPPET)),
    "bold": (f"**PROBE:**\n~~~py\n{SNIPPET}~~~\nThanks.", Probe(snippet=SNIPPET)),
    "an id": (f"PROBE: {OTHER}", Probe(ids=(OTHER,))),
    "ids in a line": (f"PROBE: {OTHER}, tests/test_cart.py", Probe(ids=(OTHER, "tests/test_cart.py"))),
    "ids below": (
        f"PROBE:\n- {OTHER}\n- `tests/test_cart.py::test_b`\n",
        Probe(ids=(OTHER, "tests/test_cart.py::test_b")),
    ),
    "unittest": ("PROBE: tests.test_cart.TestCart.test_total", Probe(ids=("tests.test_cart.TestCart.test_total",))),
}
NONE = {
    "nothing": "",
    "edits": "WHY: x\n\na.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
    "a word": "I would probe it. PROBE",
    "no content": "PROBE:\n\nI do not know.",
    "an empty fence": "PROBE:\n```python\n\n```\n",
    "not closed": f"PROBE:\n```python\n{SNIPPET}",
    "far too long": f"PROBE:\n```python\n{'x = 1 ' * LONGEST}\n```\n",
    "a zero byte": "PROBE:\n```python\nprint('\0')\n```\n",
}


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_found(name):
    answer, probe = PROBES[name]
    probe_request = find_probe(answer)
    assert probe_request is not None
    assert probe_request.probe == probe
    assert "print" not in probe_request.remaining_text


@pytest.mark.parametrize("name", NONE)
def test_text_without_a_probe_yields_none(name):
    assert find_probe(NONE[name]) is None


def test_id_with_spaces_in_its_parameters_is_found_on_its_own_line():
    probe_request = find_probe(f"PROBE: {ID}")
    assert probe_request is not None
    assert probe_request.probe.ids == (ID,)


def test_number_of_ids_is_limited():
    probe_request = find_probe("PROBE:\n" + "\n".join(f"tests/test_{number}.py" for number in range(50)))
    assert probe_request is not None
    assert len(probe_request.probe.ids) == MOST_IDS


def test_rest_of_the_answer_keeps_the_edits():
    probe_request = find_probe(f"PROBE:\n```python\n{SNIPPET}```\n{NONE['edits']}")
    assert probe_request is not None
    assert "<<<<<<< SEARCH" in probe_request.remaining_text


def test_the_same_probe_has_the_same_fingerprint():
    assert fingerprint(Probe(snippet="a")) == fingerprint(Probe(snippet="a"))
    assert len({fingerprint(item) for item in (Probe(snippet="a"), Probe(snippet="b"), Probe(ids=("a",)))}) == 3


@pytest.mark.parametrize(
    ("folder", "paths", "path"),
    [
        ("", ["a.py"], "/repo"),
        ("", ["src/a.py"], "/repo:/repo/src"),
        ("api", ["api/src/a.py"], "/repo/api:/repo/api/src"),
        ("api", ["src/a.py"], "/repo/api"),
    ],
)
def test_snippet_runs_in_the_suite_directory_with_tight_limits(folder, paths, path):
    environment = Environment(mount="/repo", python="/venv/bin/python")
    request = build_execution(
        Probe(snippet="x"), make_snapshot(), environment, Suite(runner="pytest", folder=folder), paths
    )
    assert request.limits == TIGHT
    assert request.argv == ("/venv/bin/python", f"{IN}/redstart_probe.py")
    assert (request.cwd, request.files_in) == (folder, {"redstart_probe.py": "x"})
    assert request.variables["PYTHONPATH"] == path


def test_report_of_a_snippet_shows_exit_and_output():
    success_text = describe_run(Probe(snippet="print(5)"), Completed(exit_code=0, cause=ExitCause.ok, output="5\n"))
    assert success_text == "print(5)\n\nexit code 0; it printed:\n5"
    timeout_text = describe_run(
        Probe(snippet="x"), Completed(exit_code=137, cause=ExitCause.timeout, output="y" * 99_999)
    )
    assert "ended: timeout (exit code 137)" in timeout_text
    assert len(timeout_text) < 10_000


def test_report_of_tests_shows_outcomes_and_output():
    report = describe_outcomes(Probe(ids=("a", "b")), [make_case("a", detail="a.py:3: in f")], "", "captured 7\n")
    assert all(text in report for text in ("tests: a, b", "a: failed KeyError", "a.py:3: in f", "captured 7"))
    assert "No tests were collected." in describe_outcomes(Probe(ids=("a",)), [], "No tests were collected.", "")


@pytest.mark.parametrize("piece", [" ,", "[", "a.", "::", "\n ", "`", "PROBE: a.b \n"])
def test_malicious_answer_is_parsed_quickly(piece):
    began = time.process_time()
    find_probe("PROBE: " + piece * (LONGEST_ANSWER // len(piece) - 10))
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("snippet", "kind"),
    [
        ("const { total } = require('./cart.js');\nconsole.log(total());\n", "commonjs"),
        ("import { total } from './cart.mjs';\nconsole.log(total());\n", "module"),
        ("const cart = await import('./cart.mjs');\n", "module"),
        ("import('./cart.mjs').then(console.log);\n", "commonjs"),
    ],
)
def test_node_probe_is_javascript(snippet, kind):
    suite, environment = Suite(runner="jest", folder="web"), Environment(mount="/repo", python="/usr/bin/python3")
    request = build_execution(Probe(snippet=snippet), make_snapshot(), environment, suite, ["web/cart.js"])
    assert request.argv == ("node", f"--input-type={kind}", "--eval", snippet)
    assert (request.cwd, request.limits.wall) == ("web", TIGHT.wall)
    assert (get_snippet_language(suite), get_snippet_language(Suite(runner="pytest"))) == ("JavaScript", "Python")

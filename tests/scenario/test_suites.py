"""Whole runs on suites that are not plain pytest: behind make, nox and tox, by JUnit XML, and without results."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.scenarios import CARD, Scenario, parse_question
from support.server import ScriptedServer, Wire

BUG = Scenario.load(Path(__file__).parent / "repos" / "pager")
NOXFILE = """
    import nox


    @nox.session(python=["3.9", "3.12"])
    def tests(session):
        session.install(".", "pytest")
        session.run("pytest", *session.posargs)
    """
TOX_INI = """
    [tox]
    envlist = py

    [testenv]
    deps = pytest
    commands = pytest {posargs}
    """
MAKEFILE = "test:\n\tpython -m pytest -x\n"
OWN_RUNNER = """
    import os
    import sys
    import traceback
    from xml.sax.saxutils import quoteattr

    sys.path[:0] = [".", "tests"]
    import pytest
    import test_pager

    results, red = [], 0
    for name, check in sorted(vars(test_pager).items()):
        if name.startswith("test_"):
            try:
                check()
                results.append(f'<testcase classname="pager" name="{name}"/>')
            except BaseException as error:
                red += 1
                said = quoteattr(f"{type(error).__name__}: {error}")
                text = traceback.format_exc().replace("&", "&amp;").replace("<", "&lt;")
                fault = f"<failure message={said}>{text}</failure>"
                results.append(f'<testcase classname="pager" name="{name}">{fault}</testcase>')
    if "--quiet" not in sys.argv:
        os.makedirs("out/reports", exist_ok=True)
        with open("out/reports/pager.xml", "w") as file:
            file.write(f"<testsuite>{''.join(results)}</testsuite>")
    print(f"{red} of {len(results)} checks failed")
    sys.exit(bool(red))
    """


@pytest.fixture(scope="module")
def tools(tmp_path_factory) -> Path:
    """Create a project's environment with pytest, nox and tox."""
    folder = tmp_path_factory.mktemp("tools") / "venv"
    uv = shutil.which("uv")
    assert uv, "uv is needed to make the environment"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    pip_arguments = ["--python", str(folder / "bin" / "python"), f"pytest=={version('pytest')}", "nox", "tox"]
    subprocess.run([uv, "pip", "install", "-q", "--compile-bytecode", *pip_arguments], check=True)
    return folder


@pytest.fixture
def pager(repo_of) -> Path:
    repo = repo_of("pager")
    (repo / "Makefile").write_text(MAKEFILE)
    for name, text in (("noxfile.py", NOXFILE), ("tox.ini", TOX_INI), ("check.py", OWN_RUNNER), ("conftest.py", "")):
        (repo / name).write_text(textwrap.dedent(text).lstrip("\n"))
    return repo


def make_constant_model(text: str):
    """Return a model that gives this patch to every question except `remember`."""
    return lambda request: CARD if parse_question(request) == "remember" else text


COMMANDS = ["make test", "nox", "nox -s tests-3.12", "tox", "tox -e py -- -q"]


@pytest.mark.parametrize("command", sample_parameters(COMMANDS, 1))
def test_command_that_starts_pytest_is_supported(command, user, tools, pager):
    user.environ["VIRTUAL_ENV"] = str(tools)
    with ScriptedServer(BUG.reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", pager, "--json", "--test-cmd", command)
    assert (result.code, result.ending["result"]) == (0, "verified"), result.out + result.err
    reproduce_event = next(event for event in result.events if event["name"] == "reproduce" and event["phase"] == "end")
    assert sorted(reproduce_event["data"]["targets"]) == sorted(BUG.red)


def test_runner_that_writes_junit_xml_is_supported(user, pager):
    with ScriptedServer(make_constant_model(BUG.right)) as server:
        user.uses(server, Wire.openai)
        options = ("--test-cmd", "python check.py", "--junit", "out/**/*.xml")
        result = user.redstart("fix", pager, "--json", *options)
    assert (result.code, result.ending["result"]) == (0, "verified"), result.out + result.err
    reproduce_event = next(event for event in result.events if event["name"] == "reproduce" and event["phase"] == "end")
    assert sorted(reproduce_event["data"]["targets"]) == [
        f"pager::{item.rpartition('::')[2]}" for item in sorted(BUG.red)
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--test-cmd", "python check.py"], "Results per test need a command that starts pytest, or --junit PATH"),
        (["--test-cmd", "true"], "proves nothing about any test"),
        (
            ["--test-cmd", "python check.py --quiet", "--junit", "out/reports/*.xml"],
            "Does the command write JUnit XML to out/reports/*.xml?",
        ),
    ],
)
def test_missing_results_per_test_stop_the_run_before_any_model_call(arguments, words, user, pager):
    stale = pager / "out" / "reports" / "old.xml"
    stale.parent.mkdir(parents=True)
    stale.write_text('<testsuite><testcase classname="pager" name="test_x"><failure/></testcase></testsuite>')
    with ScriptedServer(make_constant_model(BUG.right)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", pager, *arguments)
    assert (result.code, server.requests) == (3, []), result.out + result.err
    assert words in " ".join(result.out.split())
    assert "verified" not in result.out


@pytest.mark.soak
def test_patch_that_ends_the_runner_early_is_not_verified(user, tools, pager):
    user.environ["VIRTUAL_ENV"] = str(tools)
    quits = BUG.right.replace("return max(1, -(-total // size))", "raise KeyboardInterrupt")
    with ScriptedServer(make_constant_model(quits)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", pager, "--json", "--test-cmd", "make test", "--max-iters", "1")
    assert result.code == 1, result.out + result.err
    assert result.ending["result"] != "verified"


@pytest.mark.parametrize("program", sample_parameters(["tox", "nox"], 1))
def test_missing_program_is_named_with_a_hint(program, user, pager):
    with ScriptedServer(make_constant_model(BUG.right)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", pager, "--test-cmd", program)
    assert (result.code, server.requests) == (3, []), result.out + result.err
    assert f"{program} is not installed" in result.out

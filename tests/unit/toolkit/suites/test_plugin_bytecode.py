"""The byte code of installed plugins is kept between runs, and no code under test can change it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.plugin_bytecode import BytecodeSandbox, has_plugins

pytestmark = pytest.mark.slow

PLUGIN = "ANSWER = 41\n\n\ndef check(value):\n    assert value == ANSWER\n"
TEST = "import answer_plugin\n\n\ndef test_it():\n    print('the answer is', answer_plugin.ANSWER)\n"
FAILING_TEST = "import answer_plugin\n\n\ndef test_it():\n    answer_plugin.check([40])\n"
POISON = """
import pathlib, sys
from _pytest.assertion import rewrite

def rewrite_test(source, config):
    return None, compile("ANSWER = 0", str(source), "exec")

rewrite._rewrite_test = rewrite_test

def test_it():
    folder = pathlib.Path(sys.modules["redstart_bytecode"].HERE)
    for name in ("bytecode.txt", "redstart_bytecode.py", "new.txt"):
        try:
            folder.joinpath(name).write_text("x")
        except OSError:
            print(name, "cannot be written")
"""


class Project:
    """A project whose environment has a pytest plugin with an assertion."""

    def __init__(self, folder: Path, environment: Path) -> None:
        (self.site_folder,) = environment.glob("lib/python*/site-packages")
        self.plugin = self.site_folder / "answer_plugin.py"
        self.plugin.write_text(PLUGIN)
        self.recordings = 0
        self._trees = GitTrees(folder / "trees", DirectoryBlobs(folder / "blobs"))
        self.fresh_sandbox = Bubblewrap(self._trees, folder / "scratch")
        self.kept_folder = folder / "bytecode"
        self.sandbox = self.create_sandbox()
        self._environment = Environment(
            mount=str(folder / "repo"),
            python=str(environment / "bin" / "python"),
            read_only=(str(environment), sys.base_prefix),
        )

    def create_sandbox(self) -> BytecodeSandbox:
        return BytecodeSandbox(self.fresh_sandbox, self.kept_folder, self._create_empty)

    def _create_empty(self) -> Snapshot:
        self.recordings += 1
        return self._trees.create_empty()

    def create_execution(self, text: str, *options: str) -> Execution:
        request = runner.request(Suite(runner="pytest"), self._environment)
        return Execution(
            argv=(*request.argv, *options),
            snapshot=self._trees.write(self._trees.create_empty(), {"test_it.py": text.encode()}),
            environment=self._environment,
            variables=request.variables,
            files_in=request.files_in,
            collect=request.collect,
        )

    def run(self, text: str = TEST, *options: str) -> str:
        return asyncio.run(self.sandbox.run(self.create_execution(text, "-s", *options))).output

    def change_plugin_unnoticed(self) -> None:
        """Change the plugin in a way that neither its size nor its time shows: kept byte code is still used."""
        state = self.plugin.stat()
        self.plugin.write_text(PLUGIN.replace("41", "42"))
        os.utime(self.plugin, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.fixture(scope="module")
def environment_with_plugin(new_environment: Callable[..., Path]) -> Path:
    environment = new_environment(f"pytest=={version('pytest')}")
    (site_folder,) = environment.glob("lib/python*/site-packages")
    metadata_folder = site_folder / "answer_plugin-1.dist-info"
    metadata_folder.mkdir()
    (metadata_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: answer-plugin\nVersion: 1\n")
    (metadata_folder / "entry_points.txt").write_text("[pytest11]\nanswer = answer_plugin\n")
    (metadata_folder / "RECORD").write_text("answer_plugin.py,,\n")
    return environment


@pytest.fixture
def project(tmp_path: Path, environment_with_plugin: Path) -> Project:
    return Project(tmp_path, environment_with_plugin)


def test_later_runs_use_the_byte_code_that_one_recording_leaves(project: Project) -> None:
    assert "the answer is 41" in project.run()
    project.change_plugin_unnoticed()
    assert "the answer is 41" in project.run()
    project.sandbox = project.create_sandbox()  # as a later command does
    assert "the answer is 41" in project.run()
    assert project.recordings == 1


def test_runs_at_the_same_time_wait_for_one_recording(project: Project) -> None:
    async def run_both() -> list[Completed]:
        execution = project.create_execution(TEST)
        return await asyncio.gather(*(project.sandbox.run(execution) for _ in range(2)))

    assert [completed.exit_code for completed in asyncio.run(run_both())] == [0, 0]
    assert project.recordings == 1


def test_changed_plugin_is_rewritten(project: Project) -> None:
    project.run()
    project.plugin.write_text(PLUGIN.replace("41", "423"))
    assert "the answer is 423" in project.run()


def test_failed_assertion_of_a_plugin_is_explained_as_without_kept_byte_code(project: Project) -> None:
    execution = project.create_execution(FAILING_TEST)
    kept, fresh = (asyncio.run(sandbox.run(execution)) for sandbox in (project.sandbox, project.fresh_sandbox))
    explanations = [
        [line for line in completed.output.splitlines() if line.startswith(("E ", ">"))] for completed in (kept, fresh)
    ]
    assert explanations[0] == explanations[1]
    assert "E       assert [40] == 41" in explanations[0]


def test_code_under_test_cannot_change_what_other_runs_load(project: Project) -> None:
    assert project.run(POISON).count("cannot be written") == 3
    assert "the answer is 41" in project.run()
    assert "the answer is 41" in asyncio.run(project.create_sandbox().run(project.create_execution(TEST, "-s"))).output


def test_configuration_that_changes_the_byte_code_is_heeded(project: Project) -> None:
    project.run()
    project.change_plugin_unnoticed()
    assert "the answer is 42" in project.run(TEST, "--override-ini=enable_assertion_pass_hook=true")


def test_installed_package_leads_to_another_recording(project: Project) -> None:
    project.run()
    installed_folder = project.site_folder / "another-1.dist-info"
    installed_folder.mkdir()
    project.run()
    installed_folder.rmdir()
    assert project.recordings == 2


def test_damaged_byte_code_is_left_out(project: Project) -> None:
    project.run()
    (path,) = project.kept_folder.iterdir()
    path.write_text(path.read_text()[:40])
    project.sandbox = project.create_sandbox()
    assert "1 passed" in project.run()


def test_plugins_are_found_by_their_entry_points(tmp_path: Path) -> None:
    metadata_folder = tmp_path / "lib" / "python3.12" / "site-packages" / "some-1.dist-info"
    metadata_folder.mkdir(parents=True)
    environment = Environment(mount="/repo", python=str(tmp_path / "bin" / "python"))
    (metadata_folder / "entry_points.txt").write_text("[console_scripts]\nsome = some:main\n")
    assert not has_plugins(environment)
    (metadata_folder / "entry_points.txt").write_text("[pytest11]\nsome = some\n")
    assert has_plugins(environment)


def test_pytest_that_loads_no_plugins_needs_no_byte_code(project: Project) -> None:
    execution = project.create_execution(TEST)
    environment = execution.environment.model_copy(update={"variables": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}})
    unchanged = execution.model_copy(update={"environment": environment})
    assert asyncio.run(project.sandbox.add_bytecode(unchanged)) == unchanged
    assert project.recordings == 0


def test_environment_without_pytest_is_tried_once(project: Project) -> None:
    """The tests report what is missing."""
    missing = project.site_folder / "pytest"
    missing.rename(project.site_folder / "hidden")
    try:
        assert project.run() == project.run() != ""
    finally:
        (project.site_folder / "hidden").rename(missing)
    assert project.recordings == 1


def test_session_uses_the_byte_code(project: Project) -> None:
    execution = project.create_execution(TEST)

    async def run_twice() -> list[Completed]:
        async with project.sandbox.open_session(execution.environment, execution.limits) as session:
            return [await session.run(execution) for _ in range(2)]

    assert [completed.exit_code for completed in asyncio.run(run_twice())] == [0, 0]
    assert project.recordings == 1

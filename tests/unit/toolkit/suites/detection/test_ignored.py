"""Which ignored files a workspace gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from redstart.toolkit.suites.detection import ignored
from redstart.toolkit.suites.detection.ignored import Ignored, find_ignored

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def put(root: Path, *names: str, size: int = 1) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * size)


def ignore(root: Path, *patterns: str) -> None:
    (root / ".gitignore").write_text("\n".join(patterns) + "\n")


def test_what_git_ignores(root: Path) -> None:
    ignore(root, "_version.py", "*.so", "data/", "generated")
    put(root, "src/a/__init__.py", "src/a/_version.py", "src/a/fast.so", "data/x/y.bin", "generated", "new/only.so")
    assert find_ignored(root) == Ignored(("data", "generated", "new", "src/a/_version.py", "src/a/fast.so"))


def test_installed_node_modules_are_not_copied_but_named(root: Path, tmp_path: Path) -> None:
    ignore(root, "node_modules")
    put(root, "node_modules/a/index.js", "packages/one/node_modules/b/index.js", "packages/one/one.js")
    (root / "packages" / "two").mkdir()
    (root / "packages" / "two" / "node_modules").symlink_to(tmp_path)
    assert find_ignored(root) == Ignored(modules=("node_modules", "packages/one/node_modules"))


def test_a_part_of_a_repo(root: Path) -> None:
    ignore(root, "*.so")
    put(root, "part/a.so", "other/b.so", "part/a.py")
    assert find_ignored(root / "part").copies == ("a.so",)


def test_a_folder_without_git(tmp_path: Path) -> None:
    put(tmp_path, "a.so", ".gitignore")
    assert find_ignored(tmp_path) == Ignored()


@pytest.mark.parametrize(
    "name",
    [
        *("old.pyc", "__pycache__/a.pyc", "pkg/__pycache__/a.pyc", ".pytest_cache/x", ".mypy_cache/x", ".ruff_cache/x"),
        *("node_modules/a/b.js", ".tox/py311/x", ".nox/t/x", ".hypothesis/x"),
        *(".env", ".env.local", "deploy.pem", "a.key", "a.p12", "id_rsa", "id_rsa.old", "id_ed25519", ".netrc"),
        *(".pypirc", "credentials.json", "Credentials", "all.kdbx", ".aws/config", ".ssh/known", "secrets.yaml"),
        *(".npmrc", ".pgpass", ".kube/config", ".docker/config.json", "shop.tfstate", "service-account.json"),
        *("shop.env", "secrets.py", ".env.py", ".env.js"),
    ],
)
def test_caches_and_secrets_stay_behind(root: Path, name: str) -> None:
    put(root, "needed/kept.txt", name, f"needed/{name}")
    ignore(root, "*", "!.gitignore")
    assert find_ignored(root).copies == ("needed/kept.txt",)


def test_what_only_sounds_secret_is_there_for_the_tests(root: Path) -> None:
    put(root, ".env.example", "build/tokens/colours.json", "build/tokens.json", "keys/map.txt")
    ignore(root, "*", "!.gitignore")
    assert find_ignored(root).copies == (".env.example", "build", "keys")


def test_an_environment_stays_behind(root: Path) -> None:
    ignore(root, "env*", "tools")
    put(root, "env/pyvenv.cfg", "env/lib/a.py", "tools/env2/pyvenv.cfg", "tools/a.txt", "env3/conda-meta/history")
    assert find_ignored(root).copies == ("tools/a.txt",)


def test_the_largest_are_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ignore(root, "many", "heavy", "light", "one.bin")
    put(root, *(f"many/{number}" for number in range(20)))
    put(root, "heavy/a", "one.bin", size=600)
    put(root, "light/a", "light/b", size=10)
    monkeypatch.setattr(ignored, "MOST_FILES", 10)
    monkeypatch.setattr(ignored, "MOST_BYTES", 1000)
    assert find_ignored(root) == Ignored(("light", "one.bin"), ("heavy", "many"))


def test_a_link_is_one_thing_wherever_it_leads(root: Path, tmp_path: Path) -> None:
    ignore(root, "link", "folder")
    put(tmp_path, "outside/secret")
    put(root, "folder/a")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder" / "inner").symlink_to(tmp_path / "outside")
    assert find_ignored(root).copies == ("folder", "link")


def test_a_name_that_is_no_text(root: Path) -> None:
    ignore(root, "*.so")
    (root / "a.so").touch()
    Path(str(root), b"\xff.so".decode("utf-8", "surrogateescape")).touch()
    assert find_ignored(root).copies == ("a.so",)


def test_a_program_of_the_repos_configuration_is_not_run(root: Path, tmp_path: Path) -> None:
    ignore(root, "*.so")
    put(root, "a.so")
    mark = tmp_path / "mark"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", root, "config", "core.fsmonitor", str(hook)], check=True)
    assert find_ignored(root).copies == ("a.so",)
    assert not mark.exists()


def test_a_submodule_is_there_for_the_tests_without_its_git_folder(root: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    put(inner, "lib/code.py", "data.txt")
    who = ("-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "init", "-q", inner], check=True)
    subprocess.run(["git", *who, "add", "-A"], cwd=inner, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "one"], cwd=inner, check=True)
    subprocess.run(["git", *who, "submodule", "--quiet", "add", str(inner), "vendor/inner"], cwd=root, check=True)
    assert find_ignored(root).copies == ("vendor/inner/data.txt", "vendor/inner/lib")

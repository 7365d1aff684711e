"""Which ignored files a workspace gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from redstart.toolkit.suites.detection import ignored_files
from redstart.toolkit.suites.detection.ignored_files import Ignored, find_ignored

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


def write_gitignore(root: Path, *patterns: str) -> None:
    (root / ".gitignore").write_text("\n".join(patterns) + "\n")


def test_files_ignored_by_git_are_copied(root: Path) -> None:
    write_gitignore(root, "_version.py", "*.so", "data/", "generated")
    put(root, "src/a/__init__.py", "src/a/_version.py", "src/a/fast.so", "data/x/y.bin", "generated", "new/only.so")
    assert find_ignored(root) == Ignored(("data", "generated", "new", "src/a/_version.py", "src/a/fast.so"))


def test_node_modules_are_named_but_not_copied(root: Path, tmp_path: Path) -> None:
    write_gitignore(root, "node_modules")
    put(root, "node_modules/a/index.js", "packages/one/node_modules/b/index.js", "packages/one/one.js")
    (root / "packages" / "two").mkdir()
    (root / "packages" / "two" / "node_modules").symlink_to(tmp_path)
    assert find_ignored(root) == Ignored(modules=("node_modules", "packages/one/node_modules"))


def test_subdirectory_of_a_repo_gets_its_own_ignored_files(root: Path) -> None:
    write_gitignore(root, "*.so")
    put(root, "part/a.so", "other/b.so", "part/a.py")
    assert find_ignored(root / "part").copies == ("a.so",)


def test_directory_without_git_copies_nothing(tmp_path: Path) -> None:
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
def test_caches_and_secrets_are_not_copied(root: Path, name: str) -> None:
    put(root, "needed/kept.txt", name, f"needed/{name}")
    write_gitignore(root, "*", "!.gitignore")
    assert find_ignored(root).copies == ("needed/kept.txt",)


def test_files_that_only_sound_secret_are_copied(root: Path) -> None:
    put(root, ".env.example", "build/tokens/colours.json", "build/tokens.json", "keys/map.txt")
    write_gitignore(root, "*", "!.gitignore")
    assert find_ignored(root).copies == (".env.example", "build", "keys")


def test_virtual_environment_is_not_copied(root: Path) -> None:
    write_gitignore(root, "env*", "tools")
    put(root, "env/pyvenv.cfg", "env/lib/a.py", "tools/env2/pyvenv.cfg", "tools/a.txt", "env3/conda-meta/history")
    assert find_ignored(root).copies == ("tools/a.txt",)


def test_largest_entries_are_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gitignore(root, "many", "heavy", "light", "one.bin")
    put(root, *(f"many/{number}" for number in range(20)))
    put(root, "heavy/a", "one.bin", size=600)
    put(root, "light/a", "light/b", size=10)
    monkeypatch.setattr(ignored_files, "MOST_FILES", 10)
    monkeypatch.setattr(ignored_files, "MOST_BYTES", 1000)
    assert find_ignored(root) == Ignored(("light", "one.bin"), ("heavy", "many"))


def test_symlink_counts_as_a_single_file(root: Path, tmp_path: Path) -> None:
    write_gitignore(root, "link", "folder")
    put(tmp_path, "outside/secret")
    put(root, "folder/a")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder" / "inner").symlink_to(tmp_path / "outside")
    assert find_ignored(root).copies == ("folder", "link")


def test_undecodable_file_name_is_skipped(root: Path) -> None:
    write_gitignore(root, "*.so")
    (root / "a.so").touch()
    Path(str(root), b"\xff.so".decode("utf-8", "surrogateescape")).touch()
    assert find_ignored(root).copies == ("a.so",)


def test_program_in_the_repo_configuration_does_not_run(root: Path, tmp_path: Path) -> None:
    write_gitignore(root, "*.so")
    put(root, "a.so")
    mark = tmp_path / "mark"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", root, "config", "core.fsmonitor", str(hook)], check=True)
    assert find_ignored(root).copies == ("a.so",)
    assert not mark.exists()


def test_submodule_is_copied_without_its_git_directory(root: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    put(inner, "lib/code.py", "data.txt")
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "init", "-q", inner], check=True)
    subprocess.run(["git", *identity, "add", "-A"], cwd=inner, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "one"], cwd=inner, check=True)
    subprocess.run(["git", *identity, "submodule", "--quiet", "add", str(inner), "vendor/inner"], cwd=root, check=True)
    assert find_ignored(root).copies == ("vendor/inner/data.txt", "vendor/inner/lib")

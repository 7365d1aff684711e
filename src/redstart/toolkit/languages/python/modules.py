"""Find the names under which a tree's files are imported."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

MOST_NAMES = 200

NO_PACKAGES = frozenset(
    (
        *("test", "tests", "testing", "doc", "docs", "example", "examples", "script", "scripts", "tool", "tools"),
        *("benchmark", "benchmarks", "bench", "build", "dist", "setup", "conf", "conftest", "noxfile", "tasks"),
        *("manage", "fabfile", "venv", "node_modules", "site-packages", "versioneer", "__init__", "__main__"),
    )
)
"""Names that nobody imports, or that a badly packaged library may also provide."""


def list_own_packages(paths: Iterable[str]) -> tuple[str, ...]:
    """List the names under which a tree's files are imported: packages and modules in its root and in `src`.

    A directory without `__init__.py` in `src` is a namespace: its packages are listed, as in `acme.tool`.
    """
    files = [path.split("/") for path in paths if path.endswith(".py")]
    # A `src` that is itself a package is imported by that name.
    layout = ["src"] if ["src", "__init__.py"] not in files else []
    names: set[str] = set()
    for parts in files:
        in_src = parts[:1] == layout and len(parts) > 1
        *folders, file = parts[1:] if in_src else parts
        top = folders[0] if folders else file.removesuffix(".py")
        if top.lower() in NO_PACKAGES or top.startswith("test_"):
            continue
        if not folders:
            names.add(top)
        elif in_src or (len(folders) == 1 and file == "__init__.py"):
            names.add(".".join(folders))
    valid = {name for name in names if all(part.isidentifier() for part in name.split("."))}
    tops = {name for name in valid if not any(name.startswith(f"{other}.") for other in valid)}
    return tuple(sorted(tops))[:MOST_NAMES]


def list_importable_names(paths: Collection[str]) -> frozenset[str]:
    """List the names that an import may find. A file outside of any package can be found by its own name."""
    all_paths = frozenset(paths)
    modules: set[str] = set()
    for path in (PurePosixPath(item) for item in all_paths if item.endswith((".py", ".pyi", ".pyx", ".so"))):
        modules.add(path.name.partition(".")[0] if not _in_package(path, all_paths) else "")
        for folder in path.parents[:-1]:
            if not _in_package(folder, all_paths):
                modules.add(folder.name)
    return frozenset(modules - {"", "..", "__init__", "src", "lib"})


def _in_package(path: PurePosixPath, paths: frozenset[str]) -> bool:
    return str(path.parent / "__init__.py") in paths and path.parent != PurePosixPath()

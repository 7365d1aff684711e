"""Says where the project's packages are imported from, once the tests are collected.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later:
as a plugin of pytest, or by our unittest runner. The names to look for stand in `sentinel.txt` beside it; the variable
`REDSTART_SENTINEL` names the file to write.
"""

import importlib.util
import json
import os
import sys
import sysconfig
from pathlib import Path
from urllib.parse import unquote, urlparse

HERE = Path(__file__).resolve().parent
ROOT = os.path.realpath(os.getcwd())  # noqa: PTH109
OUT = "REDSTART_SENTINEL"


def places(name):
    """Where a module is, or would be, imported from: its file, or a namespace's folders. None where it is nowhere."""
    module = sys.modules.get(name)
    if module is None and Path(ROOT, name + ".py").is_file():
        return None  # a script in the root, whose namesake elsewhere has nothing to do with it
    try:
        spec = getattr(module, "__spec__", None) or importlib.util.find_spec(name)
    except Exception:  # a parent package may raise anything when it is imported
        spec = None
    origin = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if origin and origin not in ("built-in", "frozen", "namespace"):
        return [os.path.realpath(origin)]
    found = getattr(module, "__path__", None) or getattr(spec, "submodule_search_locations", None)
    return [os.path.realpath(one) for one in found] if found else None


def standard(path):
    """Whether it is of the standard library, which may have a module of the same name."""
    folders = {os.path.realpath(sysconfig.get_path(one)) for one in ("stdlib", "platstdlib")}
    inside = any(path.startswith(folder + os.sep) for folder in folders)
    return inside and "site-packages" not in path and "dist-packages" not in path


def editable_elsewhere():
    """Name to folder of what is installed as editable from outside of the workspace."""
    try:
        from importlib.metadata import distributions  # noqa: PLC0415 (in the standard library since 3.8)

        found = {}
        for one in distributions():
            url = json.loads(one.read_text("direct_url.json") or "{}")
            if not url.get("dir_info", {}).get("editable"):
                continue
            folder = unquote(urlparse(url.get("url", "")).path)
            names = (one.read_text("top_level.txt") or one.metadata["Name"].replace("-", "_")).split()
            if os.path.realpath(folder) != ROOT:
                found.update(dict.fromkeys(names, folder))
        return found
    except Exception:  # what is installed may be broken in any way; then nothing is known
        return {}


def look():
    names = (HERE / "sentinel.txt").read_text(encoding="utf-8").split()
    found = {name: places(name) for name in names}
    found = {name: paths if paths and not all(map(standard, paths)) else None for name, paths in found.items()}
    if not all(found.values()):
        away = editable_elsewhere()
        found = {name: paths or ([away[name]] if name in away else None) for name, paths in found.items()}
    return {"root": ROOT, "packages": found}


def write(path):
    """Writes what was found; several processes of one run may do so at once."""
    part = "%s.%d" % (path, os.getpid())  # noqa: UP031
    Path(part).write_text(json.dumps(look()), encoding="utf-8")
    os.replace(part, path)  # noqa: PTH105


def leave():
    """The tests themselves see neither our folder nor our variable."""
    os.environ.pop(OUT, None)
    sys.path[:] = [one for one in sys.path if one != str(HERE)]
    kept = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != str(HERE)]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)


def pytest_collection_finish():
    path = os.environ.get(OUT)
    if path:
        try:
            write(path)
        finally:
            leave()

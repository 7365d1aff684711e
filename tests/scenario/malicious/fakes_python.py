"""Fake Python packages: wheels and source archives built here, each with a payload that leaves a mark when it runs."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import PurePosixPath

from fake_index import FakeIndex

RUNNER = ("pytest", "iniconfig", "packaging", "pluggy", "pygments")
"""The packages that the tests of a project need, repacked from the installed ones."""


_AT_INDEX = {"on": "index", "sha256": "sha256", "yanked": "yanked"}


def build_payload(index: FakeIndex, case: str) -> str:
    """Return one line of Python that leaves the mark of `case`, as a file and as a call, and never fails."""
    code = (
        "import os, urllib.request as u\n"
        f"os.makedirs({str(index.canaries)!r}, exist_ok=True)\n"
        f"open({str(index.canaries / case)!r}, 'a').close()\n"
        "try:\n"
        f"    u.urlopen({index.build_url(f'canary/{case}')!r}, timeout=5).close()\n"
        "except OSError:\n"
        "    pass\n"
    )
    return f"import os; exec({code!r})\n"


def build_wheel(
    name: str,
    files: dict[str, str],
    *,
    version: str = "1.0",
    requires: tuple[str, ...] = (),
    points: str = "",
    says: str = "",
    links: dict[str, str] | None = None,
) -> bytes:
    """Return a wheel of these files. `says` is a different name for its metadata; `links` are symbolic links."""
    dist_info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {says or name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {require}\n" for require in requires)
    members = {
        **files,
        f"{dist_info}/METADATA": metadata,
        f"{dist_info}/WHEEL": "Wheel-Version: 1.0\nGenerator: fake\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{dist_info}/entry_points.txt": points} if points else {}),
    }
    record = "".join(f"{path},,\n" for path in (*members, f"{dist_info}/RECORD"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in {**members, f"{dist_info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
        for path, target in (links or {}).items():
            info = zipfile.ZipInfo(path)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def build_sdist(name: str, files: dict[str, str], version: str = "1.0") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", **files}.items():
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def repack(name: str) -> tuple[str, bytes]:
    """Return the file name and the wheel of an installed distribution."""
    installed = distribution(name)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in installed.files or ():
            member_path = PurePosixPath(str(path))
            if (
                ".." not in member_path.parts
                and member_path.suffix != ".pyc"
                and member_path.name not in ("INSTALLER", "REQUESTED")
            ):
                archive.writestr(zipfile.ZipInfo(str(member_path)), installed.locate_file(path).read_bytes())
    return f"{name}-{installed.version}-py3-none-any.whl", buffer.getvalue()


def publish_python(index: FakeIndex) -> None:
    for name in (*RUNNER, *(("setuptools",) if find_spec("setuptools") else ())):
        index.publish(name, *repack(name))
    _publish(index, "wheel", {"wheel/__init__.py": ""})  # builds from source require it
    _publish(index, "acme-good", {"acme_good/__init__.py": "def answer():\n    return 42\n"})
    for case in ("reqeusts", "flaskk", "py-test"):
        _publish(index, case, {f"{case}.pth": build_payload(index, case)})
    _publish_startup(index)
    _publish_sources(index)
    _publish_escaping(index)
    _trust(index)


def _publish(index: FakeIndex, name: str, files: dict[str, str], **options: object) -> None:
    index_options = {name: options.pop(key) for key, name in _AT_INDEX.items() if key in options}
    version = str(options.get("version", "1.0"))
    data = build_wheel(name, files, **options)  # type: ignore[arg-type]
    index.publish(name, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", data, **index_options)  # type: ignore[arg-type]


def _publish_startup(index: FakeIndex) -> None:
    """Publish packages with code that Python or pytest runs without an import."""

    def mark(case: str) -> str:
        return build_payload(index, case)

    _publish(index, "acme-paths", {"acme_paths.pth": mark("acme-paths")})
    _publish(index, "acme-site", {"sitecustomize.py": mark("acme-site")})
    _publish(index, "acme-user", {"usercustomize/__init__.py": mark("acme-user")})
    _publish(index, "acme-json", {"json/__init__.py": mark("acme-json")})
    _publish(index, "acme-conftest", {"conftest.py": mark("acme-conftest")})
    plugin = "[pytest11]\nacme = acme_plugin\n"
    _publish(index, "acme-plugin", {"acme_plugin.py": mark("acme-plugin")}, points=plugin)
    _publish(index, "acme-pulls-plugin", {"acme_pulls.py": ""}, requires=("acme-plugin",))
    overriding_files = {"pytest/__init__.py": mark("acme-over"), "pytest/__main__.py": mark("acme-over")}
    _publish(index, "acme-over", overriding_files, requires=("pytest",))
    bins = "[console_scripts]\ngit = acme_bin:main\n"
    _publish(index, "acme-bin", {"acme_bin.py": f"def main():\n    {mark('acme-bin')}"}, points=bins)
    target_path = "acme_data-1.0.data/data/lib/python3.11/site-packages/acme_data.pth"
    _publish(index, "acme-data", {target_path: mark("acme-data")})


def _publish_sources(index: FakeIndex) -> None:
    """Publish source archives: building one runs its code."""
    setup = (
        build_payload(index, "acme-setup") + "from setuptools import setup\nsetup(name='acme-setup', version='1.0')\n"
    )
    index.publish("acme-setup", "acme-setup-1.0.tar.gz", build_sdist("acme-setup", {"setup.py": setup}))
    project = "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n"
    backend_files = {"pyproject.toml": project, "own.py": build_payload(index, "acme-backend")}
    index.publish("acme-backend", "acme-backend-1.0.tar.gz", build_sdist("acme-backend", backend_files))
    _publish(index, "acme-pulls-source", {"acme_pulls_source.py": ""}, requires=("acme-setup",))


def _publish_escaping(index: FakeIndex) -> None:
    """Publish archives that would write outside their folder."""
    escaping_path = "../" * 12 + str(index.canaries / "acme-up").lstrip("/")
    _publish(index, "acme-up", {"acme_up.py": "", escaping_path: ""})
    _publish(index, "acme-root", {"acme_root.py": "", str(index.canaries / "acme-root"): ""})
    _publish(index, "acme-link", {"acme_link.py": ""}, links={"acme_inner": str(index.canaries)})


def _trust(index: FakeIndex) -> None:
    """Publish packages that are not what they seem."""
    _publish(index, "acme-hash", {"acme_hash.pth": build_payload(index, "acme-hash")}, sha256="0" * 64)
    _publish(index, "acme-yanked", {"acme_yanked.pth": build_payload(index, "acme-yanked")}, yanked=True)
    _publish(index, "acme-inner", {"acme_inner.py": ""}, on="second")
    inner_files = {"acme_inner.py": "", "acme_inner.pth": build_payload(index, "acme-inner")}
    _publish(index, "acme-inner", inner_files, version="99.0")
    _publish(index, "acme-wraps", {"acme_wraps.py": ""}, requires=("reqeusts",))
    _publish(index, "acme-other", {"acme_other.pth": build_payload(index, "acme-other")}, says="requests")
    _publish(index, "acme-elsewhere", {"acme_elsewhere.pth": build_payload(index, "acme-elsewhere")}, on="elsewhere")

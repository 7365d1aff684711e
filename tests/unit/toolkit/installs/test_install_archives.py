"""Faults of a wheel or a tarball, found without unpacking it."""

from __future__ import annotations

import io
import json
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from redstart.toolkit.languages.node.tarballs import find_tarball_faults
from redstart.toolkit.languages.python.wheels import inspect_wheel

METADATA = "Metadata-Version: 2.1\nName: acme-lib\nVersion: 1.0\n"


def build_wheel(folder: Path, files: dict[str, str], *, metadata: str = METADATA, mode: int = 0) -> Path:
    path = folder / "acme_lib-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"acme_lib-1.0.dist-info/METADATA": metadata, **files}.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            archive.writestr(info, text)
    return path


def build_entry_points(text: str) -> dict[str, str]:
    return {"acme_lib-1.0.dist-info/entry_points.txt": text}


HONEST: list[dict[str, str]] = [
    {"acme_lib/__init__.py": "", "acme_lib/json.py": "", "acme_lib/data.pth": "x"},
    {"acme_lib.py": "", "LICENSE": "", **build_entry_points("[console_scripts]\nacme = acme_lib:main\n")},
    {"acme_lib-1.0.data/data/share/man/acme.1": "", "acme_lib-1.0.data/scripts/acme": ""},
    {"acme.libs/libz.so": "", "acme_lib/sitecustomize.py": "", "tests/conftest.py": ""},
]


@pytest.mark.parametrize("files", HONEST)
def test_honest_wheel_has_no_fault(files: dict[str, str], tmp_path: Path) -> None:
    report = inspect_wheel(build_wheel(tmp_path, files), own_packages=("mine",))
    assert report.faults == ()
    assert (report.name, report.version, len(report.sha256)) == ("acme-lib", "1.0", 64)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"x.pth": ""}, "brings x.pth"),
        ({"X.PTH": ""}, "brings X.PTH"),
        ({"acme_lib-1.0.data/purelib/x.pth": ""}, "brings x.pth"),
        ({"acme_lib-1.0.data/platlib/sitecustomize.py": ""}, "brings sitecustomize"),
        ({"acme_lib-1.0.data/data/bin/python": ""}, "into the environment itself"),
        ({"acme_lib-1.0.data/data/pyvenv.cfg": ""}, "into the environment itself"),
        ({"acme_lib-1.0.data/scripts/git": ""}, "program called git"),
        ({"usercustomize/__init__.py": ""}, "brings usercustomize"),
        ({"re.cpython-311-x86_64-linux-gnu.so": ""}, "brings re, a module of Python"),
        ({"subprocess.py": ""}, "brings subprocess"),
        ({"_pytest/skipping.py": ""}, "not its own"),
        ({"conftest.py": ""}, "conftest.py"),
        ({"mine/extra.py": ""}, "a module of this project"),
        (build_entry_points("[console_scripts]\npython3.11 = a:b\n"), "program called python"),
        (build_entry_points("[gui_scripts]\npytest = a:b\n"), "program called pytest"),
        (build_entry_points("[pytest11]\nacme = a\n"), "plugin that pytest runs"),
        ({"../up.py": ""}, "outside"),
        ({"/root.py": ""}, "outside"),
        ({"a\\..\\b.py": ""}, "outside"),
        ({"acme_lib/zeros": "0" * (20 << 20)}, "far more than its size"),
        ({"other-1.0.dist-info/METADATA": METADATA}, "does not say what it is"),
    ],
)
def test_wheel_fault_is_named(files: dict[str, str], fault: str, tmp_path: Path) -> None:
    assert any(fault in item for item in inspect_wheel(build_wheel(tmp_path, files), own_packages=("mine",)).faults)


def test_wheel_metadata_must_match_its_name(tmp_path: Path) -> None:
    other_metadata = METADATA.replace("acme-lib", "requests")
    assert inspect_wheel(build_wheel(tmp_path, {}, metadata=other_metadata)).faults == (
        "says that it is another package",
    )
    linked = inspect_wheel(build_wheel(tmp_path, {"a": "b"}, mode=stat.S_IFLNK | 0o777)).faults
    assert "holds a link or a device instead of a file" in linked


def test_requested_plugin_is_allowed(tmp_path: Path) -> None:
    path = build_wheel(tmp_path, {**build_entry_points("[pytest11]\nacme = a\n"), "x.pth": ""})
    assert inspect_wheel(path, trusted_names={"acme-lib"}).faults == ("brings x.pth, which Python runs at every start",)


def test_invalid_wheel_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "acme_lib-1.0-py3-none-any.whl"
    path.write_bytes(b"PK nothing")
    assert "cannot be read" in inspect_wheel(path).faults[0]


def build_tarball(
    folder: Path, manifest: object, files: dict[str, bytes] | None = None, *extra_members: tarfile.TarInfo
) -> Path:
    path = folder / "a.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {"package.json": json.dumps(manifest).encode(), **(files or {})}.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra_members:
            archive.addfile(info)
    return path


def create_member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "target"
    return info


ACME = {"name": "acme", "version": "1.0.0"}


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        ({**ACME, "scripts": {"preinstall": "x"}}, "when it is installed"),
        ({**ACME, "scripts": {"postinstall": "x"}}, "when it is installed"),
        ({**ACME, "bin": {"npm": "x"}}, "program called npm"),
        ({**ACME, "bin": {"../up": "x"}}, "leads elsewhere"),
        ({**ACME, "name": "lodash"}, "another package"),
        ({**ACME, "version": "2.0.0"}, "another package"),
        ([], "another package"),
    ],
)
def test_npm_manifest_fault_is_named(manifest: object, fault: str, tmp_path: Path) -> None:
    assert any(fault in item for item in find_tarball_faults(build_tarball(tmp_path, manifest), "acme", "1.0.0"))


@pytest.mark.parametrize(
    "member", [create_member("package/x", tarfile.SYMTYPE), create_member("package/x", tarfile.FIFOTYPE)]
)
def test_link_or_device_in_a_tarball_is_a_fault(member: tarfile.TarInfo, tmp_path: Path) -> None:
    assert find_tarball_faults(build_tarball(tmp_path, ACME, None, member), "acme", "1.0.0") == (
        "holds a link or a device instead of a file",
    )


def test_honest_or_trusted_tarball_has_no_fault(tmp_path: Path) -> None:
    honest = {**ACME, "scripts": {"test": "x", "prepare": "y"}, "bin": {"acme": "x"}}
    assert find_tarball_faults(build_tarball(tmp_path, honest), "acme", "1.0.0") == ()
    assert find_tarball_faults(build_tarball(tmp_path, {**ACME, "bin": "x"}), "acme", "1.0.0") == ()
    files = {"binding.gyp": b"{}", "node_modules/b/package.json": b"{}"}
    path = build_tarball(tmp_path, {**ACME, "scripts": {"install": "x"}}, files)
    assert len(find_tarball_faults(path, "acme", "1.0.0")) == 3
    assert find_tarball_faults(path, "acme", "1.0.0", trusted_names={"acme"}) == ()


def test_tarball_that_escapes_its_directory_or_expands_too_far_is_rejected(tmp_path: Path) -> None:
    assert (
        "outside"
        in find_tarball_faults(build_tarball(tmp_path, ACME, None, create_member("package/../../x")), "acme", "1.0.0")[
            0
        ]
    )
    zeros = build_tarball(tmp_path, ACME, {"zeros": bytes(20 << 20)})
    assert find_tarball_faults(zeros, "acme", "1.0.0") == ("unfolds to far more than its size",)
    zeros.write_bytes(b"no archive")
    assert "cannot be read" in find_tarball_faults(zeros, "acme", "1.0.0")[0]

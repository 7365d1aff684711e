"""What a plug-in declares about itself is kept, as far as Redstart knows it."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from redstart.app import plugins
from redstart.ports.sandbox.port import is_isolating
from redstart.ports.sandbox.selection import list_lack_texts
from support.rig import make_rig

pytestmark = pytest.mark.slow

BOX = """
class Box:
    tier = "box"
    isolates = False
    lacks = ("memory_limit", "a word of its own")

    async def run(self, execution):
        raise NotImplementedError


def make(workspaces, scratch):
    return Box()
"""


def test_plugin_sandbox_reports_its_limitations_and_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_box.py").write_text(BOX)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint(name="box", value="acme_box:make", group=plugins.SANDBOXES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    rig = make_rig(tmp_path / "rig")
    new_sandbox = plugins.make_sandbox("plugin:box", rig.trees, tmp_path)
    assert [lack.short_description for lack in list_lack_texts(new_sandbox)] == ["no common memory limit"]
    assert not is_isolating(new_sandbox)

"""What a plug-in declares about itself is kept, as far as Redstart knows it."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from redstart.app import plugins
from redstart.ports.sandbox.choose import lacks_of
from redstart.ports.sandbox.port import isolates
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


def test_a_sandbox_of_others_tells_what_it_lacks_and_whether_it_isolates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_box.py").write_text(BOX)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint(name="box", value="acme_box:make", group=plugins.SANDBOXES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    rig = make_rig(tmp_path / "rig")
    made = plugins.make_sandbox("plugin:box", rig.trees, tmp_path)
    assert [lack.short for lack in lacks_of(made)] == ["no common memory limit"]
    assert not isolates(made)

from pathlib import Path


def test_share():
    Path("/usr/share/table-of-mine").write_text("1")

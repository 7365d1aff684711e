import os


def test_owner(tmp_path):
    (tmp_path / "a").write_text("1")
    os.chroot(tmp_path)

from pathlib import Path


def install() -> None:
    Path("/etc/machine.d").write_text("on")

# cause: disk
from pathlib import Path

for number in range(10_000):
    with Path(f"file-{number}").open("wb"):
        pass

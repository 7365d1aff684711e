# cause: disk
from pathlib import Path

for number in range(64):
    with Path(f"part-{number}").open("wb") as part:
        part.write(bytes(1 << 20))

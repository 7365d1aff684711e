# cause: ok
from pathlib import Path

try:
    for number in range(64):
        with Path(f"part-{number}").open("wb") as part:
            part.write(bytes(1 << 20))
except OSError as error:
    print(error)
for number in range(64):
    if Path(f"part-{number}").exists():
        Path(f"part-{number}").unlink()

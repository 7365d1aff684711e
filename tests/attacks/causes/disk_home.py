# cause: disk
import pathlib

for number in range(64):
    (pathlib.Path.home() / f"part-{number}").write_bytes(bytes(1 << 20))

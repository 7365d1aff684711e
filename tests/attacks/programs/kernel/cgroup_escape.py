# Leaves its control group and raises the limits of the group.
# evidence: word
# bare: refused

import contextlib
import os
from pathlib import Path

from hostile import reached

places = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")]
if os.fork() == 0:
    for place in places:
        with contextlib.suppress(OSError):
            (place / "cgroup.procs").write_text("0")
            reached()
    for name in ("memory.limit_in_bytes", "memory.max", "pids.max", "cpu.max"):
        for place in places:
            with contextlib.suppress(OSError):
                (place / name).write_text((place / name).read_text())
                reached()
    os._exit(0)
os.wait()

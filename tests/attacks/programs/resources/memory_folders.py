# Fills all folders that are stored in memory.
# evidence: memory
# bare: untried

import contextlib
import os
import time
from pathlib import Path

folders = ("/dev/shm", "/tmp", "/run", "/var/tmp", os.environ["HOME"], os.environ.get("TMPDIR", "/tmp"))
for folder in folders:
    for number in range(20):
        with contextlib.suppress(OSError):
            name = Path(folder, f"{os.environ['ATTACK_TOKEN']}-{number}")
            name.write_bytes(b"x" * (15 << 20))
time.sleep(1)

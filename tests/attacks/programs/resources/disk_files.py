# Fills the workspace with files of a permitted size.
# evidence: disk
# bare: works

import time
from pathlib import Path

for number in range(24):
    Path(f"fill-{number}").write_bytes(b"x" * (10 << 20))
time.sleep(1)

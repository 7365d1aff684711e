# Fills the folder from which the host collects results.
# evidence: disk
# bare: works

import os
import time
from pathlib import Path

for number in range(24):
    Path(os.environ["ATTACK_OUT"], f"fill-{number}").write_bytes(b"x" * (10 << 20))
time.sleep(1)

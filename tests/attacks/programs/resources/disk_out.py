# Fills the folder that is read back.
# evidence: disk
# bare: works

import os
import time
from pathlib import Path

for number in range(24):
    Path(os.environ["ATTACK_OUT"], f"fill-{number}").write_bytes(b"x" * (10 << 20))
time.sleep(1)

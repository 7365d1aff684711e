# Fills the disk with deleted files that are still open.
# evidence: disk
# bare: works

import os
import time

held = []
for number in range(24):
    file = os.open(f"fill-{number}", os.O_CREAT | os.O_WRONLY)
    os.unlink(f"fill-{number}")
    os.write(file, b"x" * (10 << 20))
    held.append(file)
time.sleep(1)

# Fills unnamed files that are stored in memory.
# evidence: memory
# bare: works

import os
import time

files = [os.memfd_create("taken") for _ in range(100)]
for file in files:
    os.write(file, b"x" * (10 << 20))
time.sleep(1)

# Shares 1 GB of anonymous memory between processes.
# evidence: memory
# bare: works

import mmap
import time

taken = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096):
    taken[at] = 1
time.sleep(1)

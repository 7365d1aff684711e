# Doubles itself eight times.
# evidence: processes
# bare: works

import os
import time

for _ in range(8):
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
time.sleep(1.5)

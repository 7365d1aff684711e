# Starts 400 processes that keep running.
# evidence: processes
# bare: works

import os
import time

for _ in range(400):
    try:
        child = os.fork()
    except OSError:
        time.sleep(0.01)
        continue
    if child == 0:
        time.sleep(2)
        os._exit(0)
time.sleep(1)

# Starts a chain of processes, each of which forks and ends, so that every list of process IDs is outdated.
# evidence: survive
# bare: works

import os
import time

if os.fork() == 0:
    os.setsid()
    over = time.monotonic() + 60
    while time.monotonic() < over:
        if os.fork():
            os._exit(0)
        time.sleep(0.02)

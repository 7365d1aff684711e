# A chain of children, each of which forks and ends, so that no list of ids is ever true.
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

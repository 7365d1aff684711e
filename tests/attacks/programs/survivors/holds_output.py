# Leaves a child process that keeps the output open.
# evidence: survive
# bare: works

import os
import time

if os.fork() == 0:
    os.setsid()
    time.sleep(60)

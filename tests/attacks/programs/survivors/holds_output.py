# A child keeps the output open after the end.
# evidence: survive
# bare: works

import os
import time

if os.fork() == 0:
    os.setsid()
    time.sleep(60)

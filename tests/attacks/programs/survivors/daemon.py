# Forks twice, leaves the session and ignores every signal that it can ignore.
# evidence: survive
# bare: works

import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        time.sleep(60)
    os._exit(0)
os.wait()

# Waits, and ignores every signal that it can ignore, as do its child processes.
# evidence: time
# bare: works

import os
import signal
import time

for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
os.fork()
os.fork()
time.sleep(60)

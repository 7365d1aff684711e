# cause: timeout
# limits: wall=2
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)

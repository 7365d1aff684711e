# cause: ok
import os
import signal

child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)

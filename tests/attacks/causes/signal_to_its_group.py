# cause: signal
import os
import signal

os.kill(0, signal.SIGKILL)

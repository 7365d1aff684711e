# Leaves a System V shared memory segment behind.
# evidence: ipc
# bare: works

import ctypes
import os

libc = ctypes.CDLL(None)
segment = libc.shmget(int(os.environ["ATTACK_KEY"]), 4096, 0o1666)
assert segment >= 0

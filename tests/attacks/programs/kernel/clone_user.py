# Creates a user namespace with the `clone` call.
# evidence: namespace
# bare: kernel

import os

from hostile import hold, syscall

if syscall("clone", 0x10000000 | 17, 0, 0, 0, 0) == 0:
    hold()
    os._exit(0)
os.wait()

# Creates a user namespace in which it is root.
# evidence: namespace
# bare: kernel

import os

from hostile import hold, syscall

if os.fork() == 0:
    syscall("unshare", 0x10000000)
    hold()
    os._exit(0)
os.wait()

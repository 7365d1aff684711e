# Opens the ring through which calls pass a filter unseen.
# evidence: descriptor
# bare: kernel

import ctypes

from hostile import hold, syscall

syscall("io_uring_setup", 4, (ctypes.c_ubyte * 120)())
hold()

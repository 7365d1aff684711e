# Opens an io_uring, through which calls bypass the filter.
# evidence: descriptor
# bare: kernel

import ctypes

from hostile import hold, syscall

syscall("io_uring_setup", 4, (ctypes.c_ubyte * 120)())
hold()

# Loads a map into the kernel's virtual machine.
# evidence: descriptor
# bare: refused

import ctypes

from hostile import hold, syscall

syscall("bpf", 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 128)
hold()

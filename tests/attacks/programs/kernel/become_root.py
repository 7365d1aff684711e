# Takes the user ID of root and every capability.
# evidence: word
# bare: refused

import ctypes
import os

from hostile import reached, syscall

for attempt in (lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0])):
    try:
        attempt()
        reached()
    except OSError:
        continue
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
everything = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
syscall("capset", header, everything)
reached()

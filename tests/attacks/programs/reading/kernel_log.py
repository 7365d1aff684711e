# Reads the kernel's log.
# evidence: word
# bare: kernel

import ctypes

from hostile import reached, syscall

if syscall("syslog", 3, ctypes.create_string_buffer(4096), 4096) > 0:
    reached()

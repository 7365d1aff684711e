# Opens the performance counters.
# evidence: descriptor
# bare: kernel

import ctypes

from hostile import hold, syscall

event = (ctypes.c_uint32 * 32)()
event[0], event[1], event[2] = 1, 128, 1
event[10] = 0x60
syscall("perf_event_open", event, 0, -1, -1, 0)
hold()

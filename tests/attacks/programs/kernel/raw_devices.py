# Opens disks, memory and similar devices by name.
# evidence: word
# bare: kernel

import contextlib
import os
from pathlib import Path

from hostile import reached

named = ("mem", "kmem", "port", "kmsg", "vda", "sda", "nvme0n1", "loop0", "loop-control", "fuse", "kvm", "net/tun")
for path in (*(Path("/dev", name) for name in named), Path("/proc/kcore")):
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR))
        reached()

# Enters the namespaces of the agent.
# evidence: word
# bare: refused

import contextlib
import os

from hostile import reached, syscall

for kind in ("mnt", "net", "pid", "user", "ipc", "uts", "cgroup"):
    with contextlib.suppress(OSError):
        syscall("setns", os.open(f"/proc/{os.environ['ATTACK_AGENT']}/ns/{kind}", os.O_RDONLY), 0)
        reached()

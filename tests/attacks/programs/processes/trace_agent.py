# Attaches to the agent as a debugger.
# evidence: trace
# bare: works

import os

from hostile import hold, syscall

syscall("ptrace", 0x4206, int(os.environ["ATTACK_AGENT"]), 0, 0)
hold()

# Copies an open file descriptor from the agent.
# evidence: read
# bare: works

import os

from hostile import syscall

agent = syscall("pidfd_open", int(os.environ["ATTACK_AGENT"]), 0)
for number in range(3, 8):
    try:
        print(os.pread(syscall("pidfd_getfd", agent, number, 0), 4096, 0))
    except OSError:
        continue

# Leaves a process without variables and with another name.
# evidence: survive
# bare: works

import os

if os.fork() == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "61"], {})

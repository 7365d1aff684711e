# Leaves a process behind that has another name and no environment variables.
# evidence: survive
# bare: works

import os

if os.fork() == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "61"], {})

# Handles page faults itself, which makes races in the kernel easy to win.
# evidence: descriptor
# bare: kernel

from hostile import hold, syscall

syscall("userfaultfd", 0o2000000 | 1)
hold()

# Takes page faults into its own hands, which makes kernel races easy to win.
# evidence: descriptor
# bare: kernel

from hostile import hold, syscall

syscall("userfaultfd", 0o2000000 | 1)
hold()

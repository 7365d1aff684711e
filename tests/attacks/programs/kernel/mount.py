# Mounts a file system.
# evidence: word
# bare: refused

from hostile import reached, syscall

syscall("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
reached()

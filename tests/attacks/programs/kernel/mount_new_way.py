# Mounts a file system with the newer mount calls.
# evidence: word
# bare: refused

import contextlib

from hostile import reached, syscall

with contextlib.suppress(OSError):
    syscall("open_tree", -100, b"/", 1)
    reached()
syscall("fsopen", b"tmpfs", 0)
reached()

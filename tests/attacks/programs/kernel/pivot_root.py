# Replaces the root directory with `pivot_root`.
# evidence: word
# bare: refused

import os

from hostile import reached, syscall

os.makedirs("new/old")
syscall("pivot_root", b"new", b"new/old")
reached()

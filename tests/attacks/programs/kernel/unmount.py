# Unmounts file systems to see what they hide.
# evidence: word
# bare: refused

import os

from hostile import reached, syscall

for place in (os.environ["ATTACK_REPO"], "/proc", "/tmp", os.environ["HOME"]):
    try:
        syscall("umount2", place.encode(), 2)
        reached()
    except OSError:
        continue

# Changes the root and climbs out of it.
# evidence: word
# bare: refused

import os

from hostile import reached

os.mkdir("jail")
os.chroot("jail")
reached()

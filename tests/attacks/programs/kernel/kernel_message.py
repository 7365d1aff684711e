# Writes to the kernel's log.
# evidence: word
# bare: refused

import os

from hostile import reached

os.write(os.open("/dev/kmsg", os.O_WRONLY), b"")
reached()

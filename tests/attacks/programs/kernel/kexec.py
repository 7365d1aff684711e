# Loads another kernel; any other answer than a refusal means that it may.
# evidence: word
# bare: refused

import errno

from hostile import reached, syscall

try:
    syscall("kexec_load", 0, 99, 0, 0)
    reached()
except OSError as error:
    if error.errno not in (errno.EPERM, errno.ENOSYS):
        reached()

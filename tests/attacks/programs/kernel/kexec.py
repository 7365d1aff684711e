# Tries to load another kernel. Any answer except a refusal means that it is allowed to.
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

# Tries to load a kernel module. Any answer except a refusal means that it is allowed to.
# evidence: word
# bare: refused

import errno

from hostile import reached, syscall

for call in (("init_module", b"junk", 4, b""), ("finit_module", 0, b"", 0), ("delete_module", b"no_such_module", 0)):
    try:
        syscall(*call)
        reached()
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            reached()

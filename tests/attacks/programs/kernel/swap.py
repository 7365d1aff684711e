# Uses a file as swap space.
# evidence: word
# bare: refused

import errno

from hostile import reached, syscall

open("swap", "wb").write(bytes(40960))
for call in (("swapon", b"swap", 0), ("acct", b"swap")):
    try:
        syscall(*call)
        reached()
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            reached()

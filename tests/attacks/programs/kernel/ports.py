# Accesses hardware ports directly, past the kernel.
# evidence: word
# bare: refused

from hostile import reached, syscall

for call in (("iopl", 3), ("ioperm", 0x80, 1, 1)):
    try:
        syscall(*call)
        reached()
    except OSError:
        continue

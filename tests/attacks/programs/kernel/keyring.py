# Keeps something in the kernel's keyring, which outlives it.
# evidence: word
# bare: kernel

from hostile import reached, syscall

key = syscall("add_key", b"user", b"redstart-attack", b"x", 1, -4)
syscall("keyctl", 3, key)
reached()

# Leaves device files for the host's disk and memory.
# evidence: leave
# bare: refused
mknod disk b 254 0
mknod "$ATTACK_OUT/memory" c 1 1

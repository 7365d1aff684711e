# Starts a sandbox in the sandbox, with rights of its own.
# evidence: word
# bare: kernel
command -v bwrap || exit 1
bwrap --unshare-all --ro-bind / / echo "REACHED $ATTACK_TOKEN"

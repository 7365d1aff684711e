# Starts a sandbox inside the sandbox, with its own rights.
# evidence: word
# bare: kernel
command -v bwrap || exit 1
bwrap --unshare-all --ro-bind / / echo "REACHED $ATTACK_TOKEN"

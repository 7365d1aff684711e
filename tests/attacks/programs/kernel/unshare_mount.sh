# Becomes root of new namespaces, from a shell.
# evidence: namespace
# bare: kernel
unshare --user --map-root-user --mount --pid --fork sleep 1.5

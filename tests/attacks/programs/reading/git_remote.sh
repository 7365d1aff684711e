# Reads the password in the real repo's remote address.
# evidence: read
# bare: works
cat "$ATTACK_REPO/.git/config"
git -C "$ATTACK_REPO" remote -v

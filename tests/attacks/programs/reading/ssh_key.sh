# Reads the user's SSH key.
# evidence: read
# bare: works
cat "$ATTACK_HOME/.ssh/id_ed25519"

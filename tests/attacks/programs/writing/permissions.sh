# Opens the user's key for everyone.
# evidence: write
# bare: works
chmod 777 "$ATTACK_HOME/.ssh/id_ed25519"

# Reads the ignored settings file in the real repo.
# evidence: read
# bare: works
cat "$ATTACK_REPO/.env" "$ATTACK_REPO/../shop/.env"

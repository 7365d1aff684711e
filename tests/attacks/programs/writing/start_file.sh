# Adds a line to a startup file of the user's shell.
# evidence: write
# bare: works
echo 'echo owned' >> "$ATTACK_HOME/.bashrc"

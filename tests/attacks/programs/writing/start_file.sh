# Adds a line to the file that the user's next shell obeys.
# evidence: write
# bare: works
echo 'echo owned' >> "$ATTACK_HOME/.bashrc"

# Lists the names in the user's home.
# evidence: read
# bare: works
ls -aR "$ATTACK_HOME"

# Reads the file through the working folder of the agent's process.
# evidence: read
# bare: works
cat "/proc/$ATTACK_AGENT/cwd/${ATTACK_CANARY##*/}"

# Reads the file through the root folder of the agent's process.
# evidence: read
# bare: works
cat "/proc/$ATTACK_AGENT/root$ATTACK_CANARY"

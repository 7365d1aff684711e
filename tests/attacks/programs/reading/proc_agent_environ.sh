# Reads the agent's environment variables by its process ID.
# evidence: read
# bare: works
tr '\0' '\n' < "/proc/$ATTACK_AGENT/environ"

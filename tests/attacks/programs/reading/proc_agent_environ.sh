# Reads the variables of the agent by its process id.
# evidence: read
# bare: works
tr '\0' '\n' < "/proc/$ATTACK_AGENT/environ"

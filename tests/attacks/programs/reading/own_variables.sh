# Prints its variables, in which the agent's may be.
# evidence: read
# bare: works
env

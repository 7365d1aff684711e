# Prints its environment variables, which may include the agent's.
# evidence: read
# bare: works
env

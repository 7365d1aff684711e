# Stops the agent, so that nothing watches any more.
# evidence: harm
# bare: works
kill -STOP "$ATTACK_AGENT"

# Climbs to the root from the workspace and down again.
# evidence: read
# bare: works
cat "../../../../../../../../../../..$ATTACK_CANARY"

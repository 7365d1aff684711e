# Follows `..` from the workspace up to the root, then goes down to the file.
# evidence: read
# bare: works
cat "../../../../../../../../../../..$ATTACK_CANARY"

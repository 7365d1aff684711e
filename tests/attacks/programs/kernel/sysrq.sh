# Sends the kernel a magic SysRq key: the one that only prints help.
# evidence: word
# bare: refused
(echo h > /proc/sysrq-trigger) && echo "REACHED $ATTACK_TOKEN"

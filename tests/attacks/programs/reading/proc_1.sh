# Reads the file through the root folder of process 1.
# evidence: read
# bare: refused
cat "/proc/1/root$ATTACK_CANARY"
ls -a "/proc/1/root$ATTACK_HOME"

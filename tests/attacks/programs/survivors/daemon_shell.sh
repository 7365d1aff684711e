# Leaves a process behind with setsid and nohup.
# evidence: survive
# bare: works
setsid nohup sleep 60 >/dev/null 2>&1 </dev/null &
exit 0

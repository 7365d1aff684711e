# Sleeps longer than the time limit.
# evidence: time
# bare: works
sleep 1000

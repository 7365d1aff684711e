# Sleeps longer than it may.
# evidence: time
# bare: works
sleep 1000

# Stops itself instead of ending.
# evidence: time
# bare: works
kill -STOP $$
sleep 60

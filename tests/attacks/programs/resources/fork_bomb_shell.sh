# Starts 300 processes in the background from a shell.
# evidence: processes
# bare: works
n=0
while [ $n -lt 300 ]; do
    sleep 3 &
    n=$((n + 1))
done
sleep 1

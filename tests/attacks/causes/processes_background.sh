# cause: processes
set -e
n=0
while [ $n -lt 200 ]; do sleep 60 & n=$((n + 1)); done

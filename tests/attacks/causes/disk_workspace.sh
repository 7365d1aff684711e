# cause: disk
set -e
n=0
while [ $n -lt 64 ]; do dd if=/dev/zero of=part-$n bs=1M count=1 2>&1; n=$((n + 1)); done

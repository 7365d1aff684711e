# Fills the workspace from a shell.
# evidence: disk
# bare: works
n=0
while [ $n -lt 24 ]; do
    dd if=/dev/zero of="fill-$n" bs=1M count=10 2>/dev/null || break
    n=$((n + 1))
done
sleep 1

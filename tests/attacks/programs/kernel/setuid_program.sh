# Starts a setuid program, which runs as root.
# evidence: privilege
# bare: kernel
sleep 1.2 | su root -c id

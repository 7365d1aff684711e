# Starts a program that runs as root whoever starts it.
# evidence: privilege
# bare: kernel
sleep 1.2 | su root -c id

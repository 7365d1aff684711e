# Writes to the user's terminal past what is captured.
# evidence: terminal
# bare: works
printf 'TYPED' > /dev/tty

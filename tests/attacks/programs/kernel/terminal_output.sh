# Writes to the user's terminal directly, so that the output is not captured.
# evidence: terminal
# bare: works
printf 'TYPED' > /dev/tty

# Connects with bash alone.
# evidence: contact
# bare: works
exec bash -c 'echo x > /dev/tcp/127.0.0.1/$ATTACK_TCP4'

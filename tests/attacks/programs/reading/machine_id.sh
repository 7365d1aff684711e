# Reads what names this machine.
# evidence: machine
# bare: works
cat /etc/machine-id /var/lib/dbus/machine-id

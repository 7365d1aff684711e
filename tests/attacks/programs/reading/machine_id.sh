# Reads the machine ID.
# evidence: machine
# bare: works
cat /etc/machine-id /var/lib/dbus/machine-id

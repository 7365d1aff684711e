# Makes the kernel start a program for every new device.
# evidence: setting
# bare: refused
echo "/nonexistent/$ATTACK_TOKEN" > /sys/kernel/uevent_helper

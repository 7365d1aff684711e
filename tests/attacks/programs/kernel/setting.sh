# Changes a setting of the kernel.
# evidence: setting
# bare: refused
echo 46 > /proc/sys/fs/lease-break-time
sysctl -w fs.lease-break-time=46

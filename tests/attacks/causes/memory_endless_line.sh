# cause: memory
tail /dev/zero

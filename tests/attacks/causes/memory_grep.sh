# cause: memory
grep -a x /dev/zero

# cause: failed
exit 3

# cause: cpu
while :; do :; done

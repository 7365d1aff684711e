# cause: file_size
exec head -c 20000000 /dev/zero >/tmp/big

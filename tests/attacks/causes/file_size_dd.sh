# cause: file_size
exec dd if=/dev/zero of=big bs=1M count=20

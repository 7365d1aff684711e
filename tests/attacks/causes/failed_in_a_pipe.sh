# cause: failed
echo hello | grep -q goodbye

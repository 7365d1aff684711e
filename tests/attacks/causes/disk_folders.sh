# cause: disk
# limits: cpu=30
set -e
n=0
while [ $n -lt 10000 ]; do mkdir -p a$n b$n c$n d$n e$n f$n g$n h$n; n=$((n + 1)); done

# cause: timeout
# limits: wall=2
sleep 600

# cause: output
exec yes

# cause: ok
true

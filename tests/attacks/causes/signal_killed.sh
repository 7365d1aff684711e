# cause: signal
kill -9 $$

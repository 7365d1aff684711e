# cause: failed
exec redstart-no-such-program

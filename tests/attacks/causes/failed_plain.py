# cause: failed
raise SystemExit(1)

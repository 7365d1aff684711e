# cause: failed
raise AssertionError("expected: No space left on device")

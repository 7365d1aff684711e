# cause: failed
print("E       MemoryError")
print("FAILED test_a.py::test_b - MemoryError")
raise SystemExit(1)

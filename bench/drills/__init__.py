"""The drills of `bench/chaos.py`, one in each file, and the fleet that they use."""

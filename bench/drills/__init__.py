"""The drills of `bench/chaos.py`, one a file, and the ground that they stand on."""

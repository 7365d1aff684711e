"""Three agents with one real model on the same sealed tasks, for `bench/peers.py`."""

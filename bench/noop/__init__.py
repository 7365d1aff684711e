"""Runs whose steps do nothing, and the bare engines that they are measured beside, for `bench/engine.py`."""

"""What the steps need of the world. Each port is a Protocol in its `port.py`, whose docstring is the contract."""

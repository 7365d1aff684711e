"""The order of the steps: modes, routing and the reference loop."""

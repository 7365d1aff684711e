"""Which step comes next: modes, routing and the reference loop."""

"""The seven ports to what a run keeps: one module each."""

"""The seven ports to the stored data of a run, one module each."""

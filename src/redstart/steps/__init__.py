"""The eleven steps of the loop, one file each. A step reads the state, returns one artifact and writes nothing."""

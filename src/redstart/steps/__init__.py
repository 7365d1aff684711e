"""The loop's eleven words, a file each. A step reads the state, returns its one artifact and writes nothing else."""

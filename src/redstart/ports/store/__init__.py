"""The ports to runs, journal, blobs and snapshots, and blobs in a directory."""

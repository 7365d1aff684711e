"""The questions, one file each, and what fills them in."""

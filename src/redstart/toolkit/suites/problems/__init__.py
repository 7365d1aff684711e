"""Environment problems: what keeps tests from running, and what to do about it."""

"""The verdict: whether passing tests really prove a fix."""

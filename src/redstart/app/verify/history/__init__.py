"""The verdict on the changes that are already merged."""

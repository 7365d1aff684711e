"""Parts of the bench `learning.py`."""

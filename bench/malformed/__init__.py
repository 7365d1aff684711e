"""Answers as weak models write them: made by kinds, and recorded from one."""

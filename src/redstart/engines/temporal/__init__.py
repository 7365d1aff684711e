"""Temporal as the engine of a fleet. It only schedules: the store holds the truth, and payloads carry IDs.

Nothing outside this folder imports Temporal's library.
"""

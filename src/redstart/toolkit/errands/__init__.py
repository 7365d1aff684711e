"""What a run does with runs of its own: cycles of improvement, subtasks of a plan."""

from reminders.schedule import due, next_run

__all__ = ["due", "next_run"]

"""Who may do what with a document."""

from docaccess.rules import can_edit, can_read

__all__ = ["can_edit", "can_read"]

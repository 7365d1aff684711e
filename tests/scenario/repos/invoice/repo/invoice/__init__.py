from invoice.totals import Line, gross, net

__all__ = ["Line", "gross", "net"]

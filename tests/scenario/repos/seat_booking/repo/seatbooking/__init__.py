from seatbooking.hall import Hall, SoldOut

__all__ = ["Hall", "SoldOut"]

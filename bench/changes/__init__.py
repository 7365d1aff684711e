"""Changes of real projects, and what a dishonest author could make of them."""

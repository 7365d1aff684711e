"""Find the code that matters."""

"""Finding the code that matters."""

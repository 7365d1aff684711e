"""The port to what runs learned."""

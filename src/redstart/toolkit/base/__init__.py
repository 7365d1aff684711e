"""What several kits need: code files, git, tracebacks and text. Every kit may import it; it imports no kit."""

"""The command line, one module per group of commands. Slow modules are imported only when a command needs them."""

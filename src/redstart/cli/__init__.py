"""The command line, a file a group. Whatever takes long to load waits until a command needs it."""

"""The ports through which steps reach the outside world: Protocols in modules named `port`, with their contracts."""

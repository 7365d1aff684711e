"""Know-how without a framework. The kits do not import one another: the steps bring them together."""

"""One contract suite per port. Subclass it in a test module and define how to create the adapter."""

"""What the toolkit knows of programming languages: a package each, behind one protocol, found through a registry."""

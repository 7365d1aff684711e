"""Programming languages: one package each, behind one protocol, found through a registry."""

"""The nouns: frozen values without side effects. This package imports no other Redstart package."""

from tagindex.index import TagIndex, collect

__all__ = ["TagIndex", "collect"]

"""The database server: somebody else's by URL, or an embedded one that comes with the package."""

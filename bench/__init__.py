"""How fast the engine is, and what it stores: `make bench`, `make bench-peers`.

Every rate stands beside the single-row commits that the same database made in the same
seconds, so that figures of different machines can be compared. Nothing here is
installed with the package. Read `__main__.py` for the order of a run.
"""

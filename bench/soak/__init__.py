"""A soak: many runs on several workers, one of which is killed every few seconds.

`python -m bench.soak` is the whole of it. A Django app by itself: `models.py` is the
world that the nodes of `graphs.py` have an effect on. Read `__main__.py` next.
"""

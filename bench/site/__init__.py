"""The project whose worker is measured: its settings, and the graphs that it knows.

`bench/workers.py` starts `stateknot_worker` with `bench.site.settings` and says in the
environment which database that is.
"""

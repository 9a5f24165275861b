"""A project around the deployable one whose workers know one graph that spreads.

`test_spread_processes.py` uses it; read `parts.py` next.
"""

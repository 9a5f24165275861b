"""Graphs that show one thing each, ready to be run: `graphs.py` registers them.

Read `docs/how-to/bounded-loops.md` next.
"""

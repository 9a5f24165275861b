"""The kernel: pure decisions about graphs, values and supersteps.

It takes values and returns values; it knows no Django, clock, random source,
environment, logger or file. Read `vocabulary` for the words, then `blueprint` (what a
compiled graph is), `superstep` (what one round decides) and `store` (what a store must
offer).
"""

"""The deployable Django project that carries StateKnot and the demo application.

It may use everything in `stateknot`; nothing in `stateknot` knows it. Read
`project/settings.py` next.
"""

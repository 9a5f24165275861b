"""What a graph looks like, as data and as pictures; nothing here runs it.

`shape.py` reads a compiled graph or a builder alike, `topology.py` holds the exported
form and its JSON, `build.py` makes one from the other, `drawing.py` draws it.
"""

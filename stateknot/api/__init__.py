"""The REST API: what applications start, read, resume, retry and edit over HTTP.

`urls.py` lists the addresses, `endpoint.py` says what every view shares, `shapes.py`
what goes out, `bodies.py` what may come in, `problems.py` how refusals look. The views
decide nothing: they call services and selectors.
"""

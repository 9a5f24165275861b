"""A licence audit of installed Python packages: the demo job, and the tutorial.

Read `graphs.py` first: it is the whole job in one page. `licences.py` and `spdx.py`
decide what a package's licence is, `review.py` what a person must be asked,
`packages.py` and `inputs.py` read the disk, `report.py` writes the outcome.
"""

"""The runtime: where decisions of the kernel meet a store, a clock and handlers.

Read `drive.py` first: it is the way of a run. `graph.py` holds the public graph,
`admission.py` how runs begin and go on, `step_runner.py` how handlers are called.
"""

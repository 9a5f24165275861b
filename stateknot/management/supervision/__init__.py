"""Supervision of operating system processes: a django-q2 cluster, a web server.

Owns starting, watching, restarting and ending child processes, and the promise that
none of them outlives its supervisor. Knows nothing of graphs, runs or rows, except
that there is a sweep to call. Start with `worker.py`, which supervises a cluster;
`stack.py` sets a web server beside it. Below them: `child.py` (one process and its
group), `tether.py` (dying with the parent), `inbox.py` (signals), `pulse.py` (what a
cluster reports and when it counts as hung), `cluster.py` (the inside of the cluster).
"""

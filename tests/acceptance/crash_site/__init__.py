"""A project around the deployable one: its settings, with short leases and two graphs.

Worker processes of `test_crash.py` run with `tests.acceptance.crash_site.settings`.
"""

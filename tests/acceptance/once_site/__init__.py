"""A project around the deployable one whose workers kill themselves at chosen points.

Worker processes of `test_once_processes.py` run with its settings.
"""

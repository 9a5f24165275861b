"""What `manage.py stateknot_demo` is made of: its packages, its operator, its words.

Read the command first (`project/audit/management/commands/stateknot_demo.py`).
"""

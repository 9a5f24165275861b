#!/usr/bin/env python
"""Django's command line for the project in `project/`.

Everything else is Django's; read `project/settings.py` next.
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)  # what shells give for Ctrl-C, which is no fault to trace

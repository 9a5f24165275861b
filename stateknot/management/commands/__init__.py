"""Django management commands, one a module; each only parses, calls and prints."""

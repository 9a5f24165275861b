"""The crash site with its tables in a database that is not the default one."""

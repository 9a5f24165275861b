"""The crash site with its queue in Redis, whose socket is named in the environment."""

"""Template tags of the engine's pages."""

"""Web apps in real processes."""

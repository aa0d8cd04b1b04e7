"""Memory planners and arenas."""

"""Output of commands: tables, JSON, progress and the log."""

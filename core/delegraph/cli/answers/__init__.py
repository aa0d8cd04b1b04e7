"""What commands print: tables, JSON, progress, the log."""

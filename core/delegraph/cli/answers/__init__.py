"""Printing of commands' answers: tables, JSON, progress, the log."""

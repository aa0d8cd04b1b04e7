"""Printed results of commands: tables, JSON, progress and the log."""

"""The commands: one module for each, imported on demand."""

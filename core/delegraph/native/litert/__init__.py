"""Our delegates in the official interpreters."""

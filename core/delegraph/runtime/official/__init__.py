"""Undocumented members of the official interpreter, for programs that use them."""

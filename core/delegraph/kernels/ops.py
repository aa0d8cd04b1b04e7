"""Imports every kernel module, which fills the op table."""

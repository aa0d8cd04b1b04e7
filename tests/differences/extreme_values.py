"""Checks of the section Extreme values."""

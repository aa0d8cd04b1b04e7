"""Compiled external delegates in our interpreter."""

"""Checks of the section Delegation."""

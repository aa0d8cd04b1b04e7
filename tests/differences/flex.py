"""Checks of the section Flex."""

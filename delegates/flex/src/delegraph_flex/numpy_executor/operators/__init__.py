"""Operators in one module for each family; the first look-up in the table imports all modules."""

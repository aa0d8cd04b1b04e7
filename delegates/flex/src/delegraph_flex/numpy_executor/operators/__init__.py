"""Functions for operators, one module per family; the first look-up imports all modules."""

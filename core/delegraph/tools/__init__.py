"""Measuring, comparing and explaining, as functions that return records; ``cli`` prints them."""

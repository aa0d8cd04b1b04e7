"""Element-wise operators: claims, and chains of steps."""

"""Element-wise operators: their claims, and their lowering to chains."""

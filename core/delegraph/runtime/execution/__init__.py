"""Running prepared nodes: the steps, their order, one call at a time, cancelling, profiles."""

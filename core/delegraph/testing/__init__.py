"""What authors of delegates test them with."""

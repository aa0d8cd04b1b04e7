"""The engine that computes requests by replicas of Ray Serve."""

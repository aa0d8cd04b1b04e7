"""The engines that compute requests: this process, and replicas of Ray Serve."""

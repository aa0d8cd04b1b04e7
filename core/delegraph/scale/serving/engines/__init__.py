"""The engines that compute requests: in this process, or in replicas of Ray Serve."""

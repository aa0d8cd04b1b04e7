"""The endpoints: REST and gRPC, with their limits."""

"""The server in this process: REST and gRPC, without Ray."""

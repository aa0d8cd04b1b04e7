"""The server: what a request holds, its batches, its endpoints and its engines."""

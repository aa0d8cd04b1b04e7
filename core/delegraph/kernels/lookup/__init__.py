"""Kernels of operators that look values up: embeddings, hash tables, projections."""

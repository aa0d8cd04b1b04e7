"""Delegate ``jax``: TFLite operators as functions of JAX; each partition is compiled by XLA."""

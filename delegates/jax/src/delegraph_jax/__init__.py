"""The ``jax`` delegate: TFLite operators as functions of JAX, compiled a partition at a time."""

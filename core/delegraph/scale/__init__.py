"""Batches on one machine and on many: a predictor, and the engines that run it."""

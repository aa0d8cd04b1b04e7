"""Convolutions and matrix products: claims, constants, packing and fusers."""

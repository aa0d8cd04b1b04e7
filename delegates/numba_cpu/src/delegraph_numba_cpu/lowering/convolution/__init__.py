"""Convolutions and matrix products: their claims, their packed weights, and their fusers."""

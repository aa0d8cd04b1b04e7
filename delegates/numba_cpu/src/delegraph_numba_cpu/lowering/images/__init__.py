"""Operators on the height and width of images, other than convolutions."""

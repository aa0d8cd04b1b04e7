"""Recognizes what a model found in a picture: boxes, faces, poses, classes of pixels."""

"""Recognizes the findings of a model in a picture: boxes, faces, poses, classes of pixels."""

"""Recognizes a model's findings in a picture: boxes, faces, poses, classes of pixels."""

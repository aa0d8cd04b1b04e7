"""Recognition of results about pictures in model outputs: boxes, faces, poses, pixel classes."""

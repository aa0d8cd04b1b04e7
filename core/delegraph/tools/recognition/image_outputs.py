"""Recognizes outputs that locate objects in a picture.

Outputs are recognized only if they are unmistakable: by the operator that makes them, by the
model's metadata, or by shapes of a single family of models.
"""

from __future__ import annotations

import numpy as np

from delegraph.tools.recognition.boxes import find_boxes
from delegraph.tools.recognition.faces import find_faces
from delegraph.tools.recognition.findings import Findings
from delegraph.tools.recognition.picture_answer import Seen
from delegraph.tools.recognition.poses import find_poses
from delegraph.tools.recognition.segmentation import find_segmentation


def recognize(seen: Seen) -> Findings:
    """Return boxes, poses or classes in the outputs *seen*; none for unrecognized outputs."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN is left out later
        for find in (find_boxes, find_faces, find_poses, find_segmentation):
            findings = find(seen)
            if findings is not None:
                return findings
    return Findings()

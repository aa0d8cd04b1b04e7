"""Recognizes outputs that describe places in a picture.

Only what cannot be mistaken is recognized: by the operator that makes the outputs, by the model's
metadata, or by shapes that one family of models has.
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
    """Boxes, poses and classes in a picture; none where outputs are not recognized."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is no number is left out
        for find in (find_boxes, find_faces, find_poses, find_segmentation):
            findings = find(seen)
            if findings is not None:
                return findings
    return Findings()

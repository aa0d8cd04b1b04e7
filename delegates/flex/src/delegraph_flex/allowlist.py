"""Which TensorFlow operators may run at all."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.resources import files

from delegraph import Rejection

UNSAFE = frozenset(
    {
        "Abort",
        "DebugGradientIdentity",
        "DebugGradientRefIdentity",
        "DeleteSessionTensor",
        "EagerPyFunc",
        "FinalizeDataset",
        "GetSessionHandle",
        "GetSessionHandleV2",
        "GetSessionTensor",
        "ImmutableConst",
        "InitializeTableFromTextFile",
        "InitializeTableFromTextFileV2",
        "MatchingFiles",
        "MergeV2Checkpoints",
        "ModelDataset",
        "OptimizeDatasetV2",
        "PrintV2",
        "PyFunc",
        "PyFuncStateless",
        "ReadFile",
        "Recv",
        "RemoteCall",
        "Restore",
        "RestoreSlice",
        "RestoreV2",
        "Save",
        "SaveSlices",
        "SaveV2",
        "Send",
        "WriteFile",
        "_HostRecv",
        "_HostSend",
        "_Recv",
        "_Send",
    }
)
"""Operators that touch files, other processes, Python, or the process itself.

A model is a file that anybody may have written, so these run only for users who name them.
"""


@cache
def tflite_allowlist() -> frozenset[str]:
    """Return the operators that TensorFlow's converter puts into ``.tflite`` files.

    Source:
        GetFlexAllowlist, GetTFTextFlexAllowlist and GetSentencePieceFlexAllowlist;
        tflite/converter/delegates/flex/allowlisted_flex_ops.cc.
    """
    text = files("delegraph_flex").joinpath("allowlist.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def reject_by_allowlist(
    op: str, allowed_too: Collection[str], harmless: Collection[str]
) -> Rejection | None:
    """Return why an operator may not run, None when it may.

    Args:
        op: TensorFlow's name.
        allowed_too: operators that the user allows by name, harmful or not.
        harmless: operators outside the allowlist that are known to touch their inputs alone.
    """
    if op in allowed_too:
        return None
    if op in UNSAFE:
        return Rejection(
            "unsafe",
            f"{op} reaches beyond the model (files, processes, Python), "
            f"and runs only when it is named: allow={op}",
        )
    if op in tflite_allowlist() or op in harmless:
        return None
    return Rejection(
        "allowlist", f"{op} is not on the allowlist of TensorFlow operators; allow={op} adds it"
    )

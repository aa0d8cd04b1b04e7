"""Base class for delegate contexts: the answers that depend on the model only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.shared_objects import Shared, shared_object
from delegraph.errors import ArgumentError, OperatorError
from delegraph.graph.model import Model, SubgraphSpec

if TYPE_CHECKING:
    from delegraph.delegation.blob_cache import BlobCache


class ModelContext:
    """Base class of every host's context; ``DelegateContext`` documents the members.

    Args:
        model: the whole model.
        spec: the subgraph as the model declares it.
        cache_dir: where delegates keep what they compile; None for the user's own folder.
        objects: those that the interpreter shares with others, kept for as long as it lives.

    Attributes:
        spec: the subgraph as the model declares it.
        inputs: tensor indices of the subgraph's inputs.
        outputs: tensor indices of the subgraph's outputs.
        variables: tensor indices of the subgraph's variables.
        subgraph_index: position of this subgraph in the model.
    """

    def __init__(
        self,
        model: Model,
        spec: SubgraphSpec,
        cache_dir: Path | None = None,
        objects: dict[Any, Any] | None = None,
    ) -> None:
        self._model = model
        self._cache_dir = cache_dir
        self._objects = {} if objects is None else objects
        self.spec = spec
        self.inputs: Sequence[int] = spec.inputs
        self.outputs: Sequence[int] = spec.outputs
        self.variables: Sequence[int] = tuple(t.index for t in spec.tensors if t.is_variable)
        self.subgraph_index = spec.index

    @property
    def subgraph_names(self) -> Sequence[str]:
        """Names of the model's subgraphs, by index."""
        return tuple(spec.name for spec in self._model.subgraphs)

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file; None: the host does not tell."""
        return None

    @property
    def recommended_num_threads(self) -> int:
        """Number of threads that the user allows; -1 if open, 1 if the host has no such option."""
        return 1

    @property
    def num_threads(self) -> int:
        """Threads a kernel may use; >= 1."""
        return max(self.recommended_num_threads, 1)

    def cache(self, namespace: str, version: str) -> BlobCache:
        """Return the files that a delegate keeps."""
        from delegraph.delegation.blob_cache import BlobCache

        return BlobCache(namespace, version, self._cache_dir)

    def shared(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """Return an object that interpreters share."""
        return shared_object(self._objects, key, make)

    def get_model_metadata(self, name: str) -> NDArray[np.uint8]:
        """Return a metadata entry of the model."""
        metadata = self._model.metadata
        if name not in metadata:
            known = ", ".join(sorted(metadata)) or "none"
            raise ArgumentError(f"no metadata {name!r}; the model has: {known}")
        return metadata[name]

    def _require_callable(self, index: int, count: int) -> None:
        """Reject a subgraph that a kernel cannot call.

        Raises:
            OperatorError: none of the *count* subgraphs, or the kernel's own.
        """
        if not 0 <= index < count:
            raise OperatorError(f"no subgraph {index}; the model has {count}")
        if index == self.subgraph_index:
            raise OperatorError(f"subgraph {index} cannot call itself")

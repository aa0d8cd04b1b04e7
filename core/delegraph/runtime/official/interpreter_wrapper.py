"""The object ``Interpreter._interpreter`` of the official class, for programs that call it.

Delegraph itself does not use it.

Source:
    InterpreterWrapper, tflite/python/interpreter_wrapper/interpreter_wrapper_pybind11.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.delegation.num_threads import limited_num_threads
from delegraph.errors import ArgumentError, ArgumentTypeError
from delegraph.lazy_dataclass import replace
from delegraph.runtime.arguments import as_index, require_c_int, tensor_at
from delegraph.runtime.details import node_details, signature_details, tensor_details
from delegraph.runtime.session import Session
from delegraph.runtime.signature_runner import run_subgraph
from delegraph.runtime.subgraph import Subgraph
from delegraph.runtime.tensor_access import MemoryViews, read_tensor

_HANDLES: Iterator[int] = count(1)

Ints = NDArray[np.int32]


class InterpreterWrapper:
    """The official class ``InterpreterWrapper``, implemented on a session.

    For indices on which the official class crashes, its methods raise ``ArgumentError``.

    Args:
        session: session of the interpreter.
        views: counter of the views that are alive.
    """

    def __init__(self, session: Session, views: MemoryViews) -> None:
        self._session = session
        self._views = views
        self._handle = next(_HANDLES)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise an error: an interpreter cannot be copied or pickled."""
        raise not_copied("InterpreterWrapper")

    # -- running -------------------------------------------------------------------------------

    def AllocateTensors(self, subgraph_index: int = -1) -> None:
        """Allocate a subgraph; with -1, do what :meth:`Interpreter.allocate_tensors` does."""
        run, session = self._session.calls.run, self._session
        if subgraph_index == -1:
            run("AllocateTensors", session.allocate_first)
        else:
            run("AllocateTensors", session.allocate, self._subgraph(subgraph_index))

    def Invoke(self, subgraph_index: int = 0) -> None:
        """Run the subgraph with this index."""
        subgraph = self._subgraph(subgraph_index)
        self._session.calls.run("Invoke", run_subgraph, self._session, subgraph)

    def ResizeInputTensor(self, i: int, value: Any, strict: bool, subgraph_index: int = 0) -> None:
        """Give tensor *i* the shape *value*, ``[rank], int32``."""
        dtype = np.asarray(value).dtype
        if dtype != np.int32:
            raise ArgumentError(f"Shape must be type int32 (was {dtype}).")
        subgraph, session = self._subgraph(subgraph_index), self._session
        session.calls.run("ResizeInputTensor", session.resize_tensor, subgraph, i, value, strict)

    def ResetVariableTensors(self) -> None:
        """Set every variable to its initial value."""
        self._session.calls.run("ResetVariableTensors", self._session.reset_variables)

    def SetNumThreads(self, num_threads: int) -> None:
        """Set the number of threads of kernels; -1 means the default, and 0 means 1.

        Raises:
            ArgumentError: the number is below -1, which the official class ignores.
        """
        number = as_index("num_threads", num_threads)
        require_c_int("num_threads", number)
        if number < -1:
            raise ArgumentError(f"num_threads should be >= -1, not {number}")
        granted = -1 if number == -1 else limited_num_threads(max(number, 1))
        session = self._session
        session.options = replace(session.options, recommended_num_threads=granted)

    def ModifyGraphWithDelegate(self, delegate: int) -> None:
        """Apply the ``TfLiteDelegate`` at the address *delegate*; the caller must keep it alive."""
        from delegraph.runtime.delegates.compiled_delegates import delegate_at

        address = as_index("the address of a delegate", delegate)
        session = self._session
        session.calls.run("ModifyGraphWithDelegate", session.apply, delegate_at(address))

    # -- data ----------------------------------------------------------------------------------

    def SetTensor(self, i: int, value: ArrayLike, subgraph_index: int = 0) -> None:
        """Copy *value* into the tensor with index *i*."""
        subgraph = self._subgraph(subgraph_index)
        self._session.calls.run("SetTensor", self._session.write, subgraph, i, value)

    def GetTensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a copy of the values of tensor *tensor_index*."""
        self._session.calls.check("GetTensor")
        subgraph = self._subgraph(subgraph_index)
        return read_tensor(subgraph.readable(tensor_at(subgraph.tensors, tensor_index).index))

    def tensor(self, base_object: object, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a view of the memory of tensor *tensor_index*; *base_object* has no effect."""
        self._session.calls.check("tensor")
        subgraph = self._subgraph(subgraph_index)
        return self._views.of(subgraph.readable(tensor_at(subgraph.tensors, tensor_index).index))

    # -- description ---------------------------------------------------------------------------

    def NumSubgraphs(self) -> int:
        """Return the number of subgraphs of the model."""
        return len(self._session.subgraphs)

    def NumTensors(self, subgraph_index: int) -> int:
        """Return the number of tensors of a subgraph."""
        return len(self._subgraph(subgraph_index).tensors)

    def NumNodes(self) -> int:
        """Return the number of nodes of the first subgraph, delegate nodes included."""
        return len(self._subgraph(0).plan.nodes)

    def InputIndices(self) -> Ints:
        """Return the tensor indices of the inputs."""
        return np.array(self._subgraph(0).inputs, np.int32)

    def OutputIndices(self) -> Ints:
        """Return the tensor indices of the outputs."""
        return np.array(self._subgraph(0).outputs, np.int32)

    def NodeName(self, i: int) -> str:
        """Return the operator name of a node; empty if there is no such node."""
        index = as_index("a node index", i)
        return str(self._node(index)["op_name"]) if 0 <= index < self.NumNodes() else ""

    def NodeInputs(self, i: int) -> Ints:
        """Return the tensor indices that a node reads."""
        inputs: Ints = self._node(i)["inputs"]
        return inputs

    def NodeOutputs(self, i: int) -> Ints:
        """Return the tensor indices that a node writes."""
        outputs: Ints = self._node(i)["outputs"]
        return outputs

    def _node(self, index: int) -> dict[str, Any]:
        return node_details(self._subgraph(0), index)

    def TensorName(self, i: int, subgraph_index: int) -> str:
        """Return the name of tensor *i*; empty if there is no such tensor."""
        tensors, index = self._subgraph(subgraph_index).tensors, as_index("a tensor index", i)
        return tensors[index].name if 0 <= index < len(tensors) else ""

    def TensorType(self, i: int, subgraph_index: int) -> Any:
        """Return the NumPy type of the elements of tensor *i*."""
        return self._tensor(i, subgraph_index)["dtype"]

    def TensorSize(self, i: int, subgraph_index: int) -> Ints:
        """Return the shape of tensor *i* of a subgraph."""
        shape: Ints = self._tensor(i, subgraph_index)["shape"]
        return shape

    def TensorSizeSignature(self, i: int, subgraph_index: int) -> Ints:
        """Return the declared shape of tensor *i*, with -1 for each unknown dimension."""
        shape: Ints = self._tensor(i, subgraph_index)["shape_signature"]
        return shape

    def TensorQuantization(self, i: int, subgraph_index: int) -> tuple[float, int]:
        """Return scale and zero point of tensor *i*; zeros unless quantized per tensor."""
        pair: tuple[float, int] = self._tensor(i, subgraph_index)["quantization"]
        return pair

    def TensorQuantizationParameters(self, i: int, subgraph_index: int) -> tuple[Any, ...]:
        """Return scales, zero points, quantized dimension and block size of tensor *i*."""
        parameters = self._tensor(i, subgraph_index)["quantization_parameters"]
        keys = ("scales", "zero_points", "quantized_dimension", "block_size")
        return tuple(parameters[key] for key in keys)

    def TensorSparsityParameters(self, i: int, subgraph_index: int) -> dict[str, Any]:
        """Return the storage format of tensor *i* if it is sparse, otherwise an empty mapping."""
        sparsity: dict[str, Any] = self._tensor(i, subgraph_index)["sparsity_parameters"]
        return sparsity

    def _tensor(self, index: int, subgraph_index: int) -> dict[str, Any]:
        return tensor_details(tensor_at(self._subgraph(subgraph_index).tensors, index))

    def GetSignatureDefs(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return names and tensor indices of each signature."""
        return signature_details(self._session.model.signatures)

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> int:
        """Return the index of the subgraph that a signature runs."""
        for signature in self._session.model.signatures:
            if signature.key == signature_key:
                return signature.subgraph_index
        raise ArgumentError(f"No matching signature. {signature_key!r} is none of the model's.")

    def interpreter(self) -> int:
        """Return a number that identifies the interpreter; it is not an address.

        The official class returns the address of its C++ object, which does not exist here.
        """
        return self._handle

    def _subgraph(self, index: int) -> Subgraph:
        return self._session.subgraph(index)


def not_copied(what: str) -> ArgumentTypeError:
    """Return the error for copying or pickling *what*, an object with memory and threads."""
    return ArgumentTypeError(
        f"{what} cannot be copied or pickled: it owns memory and delegates; create another one "
        "from the same model instead"
    )

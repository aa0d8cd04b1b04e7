"""Starts with a kept program: a model runs as an earlier process ran it, before it is read.

Once the default delegate computes a whole model by a kept program, ``kept_start_writing`` stores a
*start*: the inputs and outputs of the model, and the key of the program. The next process needs
neither the graph of the model nor the delegate's decisions for its first answer, so it imports no
module for them. A start is used only for the same file, settings and code, in a process that has
not read a model yet.

An interpreter with a kept start allocates, invokes, describes and copies its inputs and outputs.
For everything else, it reads the model, and its session takes over the values of the tensors. It
also reads the model when the program fails, so that errors and warnings come from the session.

A file with a start is untrusted: the content is checked here, the program by its reader. The file
names a module to import, like the stored list of entry points, so only this user and root may write
it.
"""

from __future__ import annotations

import os
import stat
import sys
from _thread import get_ident
from ast import literal_eval
from collections.abc import Callable, Sequence
from importlib import import_module
from time import sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.configuration import configuration
from delegraph.errors import CallCancelledError, MalformedModelError, StateError
from delegraph.graph.model import Quantization
from delegraph.graph.model_files import map_file, mapped_file, settled_identity
from delegraph.lazy_dataclass import NamedTuple
from delegraph.log import Logger
from delegraph.memory.buffers import aligned_buffer
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.tensor import Tensor
from delegraph.runtime.execution.calls import Calls, Cancellation
from delegraph.runtime.tensor_access import STORED_AS_SEEN, Shortcuts
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.runtime.arguments import AnyPath

logger = Logger(__name__)

NAMESPACE = "starts"
"""Name of the cache of stored starts."""

FORM = 1
"""Number that changes with the format of stored starts."""

_IN_USE = ("delegraph.runtime.session", "delegraph.plugins.plugin_set")
"""Modules whose import shows that this process has read a model or loaded plugins.

The plugins may then differ from those of the process that stored the start.
"""

_MOST_DIMENSION = 1 << 31

_MOST_NODES = 1_000_000
"""Largest number of nodes for which a start is used; the reader of models allows as many."""


class Request(NamedTuple):
    """A model file, with everything outside of the file that a start depends on.

    Attributes:
        content: the mapped file.
        num_threads: number of threads that the user allows; None if not set.
        key: text that differs for other files, settings, and installations of Python.
    """

    content: NDArray[np.uint8]
    num_threads: int | None
    key: str

    @property
    def cache(self) -> BlobCache:
        """Cache of the stored starts."""
        return BlobCache(NAMESPACE, str(FORM))


def requested(path: AnyPath, num_threads: int | None) -> Request | None:
    """Return the request for a kept start of the model at *path*; None if the model must be read.

    The model must be read if this process logs, or has read a model or loaded plugins. It must also
    be read if *path* has a ``#`` or cannot be mapped, or if the file was just changed.

    Args:
        path: the argument of the interpreter, which has no other argument but *num_threads*. No
            delegates are configured.
        num_threads: number of threads that the user allows; None if not set.
    """
    if any(name in sys.modules for name in _IN_USE) or logger.is_wanted():
        return None
    try:
        file = os.fsdecode(path)
        if not stat.S_ISREG(os.stat(file).st_mode):
            return None  # opening a pipe would take what is in it
        content = map_file(file)
    except (MalformedModelError, OSError, TypeError, ValueError):
        return None  # reading the model says what is wrong
    mapped = mapped_file(content)
    identity = None if mapped is None else settled_identity(mapped.status)
    if identity is None or "#" in file:
        return None
    environment = sorted(each for each in os.environ.items() if each[0].startswith("DELEGRAPH_"))
    known = (identity, num_threads, sys.version, sys.prefix, environment, configuration())
    return Request(content, num_threads, repr(known))


def found(request: Request) -> KeptStart | None:
    """Return the stored start for *request*; None if there is none that can be used."""
    content = request.cache.read(request.key)
    if content is None:
        return None
    try:
        stored = Stored.of(content)
        programs = import_module(stored.module)
        is_present = programs.made_for(request.num_threads) == stored.made_for
    except (AttributeError, ImportError, ArithmeticError, LookupError, MemoryError, RecursionError,
            SyntaxError, TypeError, ValueError):  # fmt: skip
        return None
    if not is_present:
        return None
    return KeptStart(request, stored, programs)


class Stored(NamedTuple):
    """A start as it is stored: a tuple of texts and numbers, written as Python writes it.

    Attributes:
        module: module of the default delegate that runs the program: see ``start_module`` of
            :class:`~delegraph.delegation.simple_delegate.SimpleDelegateKernelInterface`.
        made_for: text of everything that the program depends on besides the model.
        program: key of the program.
        nodes: number of nodes that the program computes.
        tensors: fields of each input and output; see :meth:`tensor`.
        inputs: indices of the inputs.
        outputs: indices of the outputs.
    """

    module: str
    made_for: str
    program: str
    nodes: int
    tensors: tuple[tuple[Any, ...], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, content: bytes) -> Stored:
        """Return the start in the *content* of a file, after checks of all its values.

        Raises:
            ValueError, TypeError, SyntaxError: the content is no start.
        """
        found = cls(*literal_eval(content.decode("ascii")))
        texts = found.module, found.made_for, found.program
        lists = found.inputs, found.outputs
        is_sound = all(type(text) is str for text in texts)
        is_sound = is_sound and type(found.nodes) is int and 0 < found.nodes <= _MOST_NODES
        is_sound = is_sound and all(type(each) is tuple and each for each in lists)
        is_sound = is_sound and all(map(str.isidentifier, found.module.split(".")))
        known = {tensor.index for tensor in found.made()}
        if not is_sound or known != {*found.inputs, *found.outputs}:
            raise ValueError("a start without program, inputs or outputs")
        return found

    def made(self) -> list[Tensor]:
        """Return a new tensor without memory for each input and output.

        Raises:
            ValueError, TypeError: the fields do not describe a tensor.
        """
        return [self.tensor(*fields) for fields in self.tensors]

    @staticmethod
    def fields(tensor: Tensor) -> tuple[Any, ...]:
        """Return the arguments with which :meth:`tensor` makes a tensor like *tensor*."""
        known = tensor.quantization
        quantization = None
        if known is not None:
            scales, zeros = known.scales.tobytes(), known.zero_points.tobytes()
            quantization = scales, zeros, known.quantized_dimension
        about = tensor.shape_signature, tensor.has_rank, quantization
        return tensor.index, tensor.name, int(tensor.type), tensor.shape, *about

    @staticmethod
    def tensor(
        index: int,
        name: str,
        number: int,
        shape: tuple[int, ...],
        signature: tuple[int, ...],
        has_rank: bool,
        quantization: tuple[bytes, bytes, int] | None,
    ) -> Tensor:
        """Return the tensor with these fields; *number* is that of its type in the schema.

        *quantization* has the bytes of the float32 scales, those of the int32 zero points, and the
        quantized dimension.

        Raises:
            ValueError: the numbers describe no tensor that a start can have.
        """
        kind = TensorType(number)
        sizes = (index, *shape)
        if kind not in STORED_AS_SEEN or type(name) is not str or not shape:
            raise ValueError("a tensor of another kind")
        if not all(type(size) is int and 0 <= size < _MOST_DIMENSION for size in sizes):
            raise ValueError("a tensor of another size")
        if len(signature) not in (0, len(shape)) or set(map(type, signature)) - {int}:
            raise ValueError("a tensor of another shape")
        known = None
        if quantization is not None:
            scales, zeros, dimension = quantization
            known = Quantization(
                np.frombuffer(scales, np.float32), np.frombuffer(zeros, np.int32), int(dimension)
            )
        return Tensor(
            index,
            kind,
            shape,
            name=name,
            shape_signature=signature,
            has_rank=bool(has_rank),
            quantization=known,
        )


class KeptStart:
    """A model that runs by a kept program, without its graph.

    Args:
        request: the model file, and the user's settings.
        stored: the stored start.
        programs: the module ``stored.module``.

    Attributes:
        request: the argument.
        known: the inputs and outputs, by index.
        inputs, outputs: indices of inputs and outputs.
        cancellation: stop request for the running call.
        calls: lock that lets one call run at a time.
        shortcuts: the inputs and outputs, once they have memory.
        is_allocated: whether the tensors have memory, and the program can run.
    """

    def __init__(self, request: Request, stored: Stored, programs: Any) -> None:
        self.request = request
        self.inputs, self.outputs = stored.inputs, stored.outputs
        self.known = {tensor.index: tensor for tensor in stored.made()}
        self.cancellation = Cancellation()
        self.calls = Calls(self.cancellation)
        self.is_allocated = False
        self._stored, self._programs = stored, programs
        self.shortcuts = Shortcuts(self.calls.turn)
        self._call: Callable[[], Any] | None = None

    def allocate(self) -> bool:
        """Allocate the tensors; return False if the program cannot be used.

        Raises:
            StateError: another call runs.
        """
        if not self.is_allocated:
            self.calls.run("allocate_tensors", self._allocate)
        return self.is_allocated

    def _allocate(self) -> None:
        try:
            run = self._made_run()
        except Exception:  # noqa: BLE001 - of a stored number, or of the program's library
            return
        if run is None:
            return
        self._call = self.calls.bound("invoke", run)
        for index, tensor in self.known.items():
            self.shortcuts.add_source(tensor)
            if index in self.inputs:
                self.shortcuts.add_target(tensor)
        self.is_allocated = True

    def _made_run(self) -> Callable[[], None] | None:
        limit = MemoryLimit.of(None, len(self.request.content))
        limit.require(sum(tensor.bytes for tensor in self.known.values()), "inputs and outputs")
        for tensor in self.known.values():
            values = aligned_buffer(tensor.bytes).view(tensor.dtype).reshape(tensor.shape)
            values[...] = 0
            tensor.data = values
        run: Callable[[], None] | None = self._programs.run_of(
            self._stored, self.known, self.request.num_threads, limit, self.cancellation
        )
        return run

    def invoke(self) -> bool:
        """Run the program; return False if it failed or is not allocated.

        Raises:
            StateError: another call runs.
            CallCancelledError: the call was asked to stop.
        """
        if self._call is None:
            return False
        try:
            self._call()
        except (StateError, CallCancelledError):
            raise
        except Exception:  # noqa: BLE001 - the session runs the model again, and says what is wrong
            return False
        return True

    def write(self, index: int, value: Any) -> bool:
        """Copy *value* into the large input *index*; return False if nothing was copied.

        Nothing is copied unless *value* is an array of the input's dtype and shape. Small inputs
        are copied by ``shortcuts``.

        Raises:
            StateError: another call runs.
        """
        return bool(self.calls.run("set_tensor", self.shortcuts.copy_large, index, value))

    def end(self, work: Callable[[], None]) -> None:
        """Call *work*, which replaces this start, once no other thread's call runs.

        Raises:
            StateError: a call of this thread runs.
        """
        while (owner := self.calls.turn.get("owner")) is not None and owner[1] != get_ident():
            sleep(0.001)
        self.calls.run("reading the model", work)

    def hand_over(self, tensors: Sequence[Tensor]) -> None:
        """Copy the values of inputs and outputs to tensors of the model, and forget them here."""
        self._call = None
        self.shortcuts.clear()
        for index, own in self.known.items():
            tensors[index].data[...] = own.data

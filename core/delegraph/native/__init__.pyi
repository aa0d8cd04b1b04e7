from .litert.c_kernel import litert_custom_op as litert_custom_op
from .litert.compiled_model import compiled_model as compiled_model
from .litert.compiled_model import placement_of as placement_of
from .litert.delegate import litert_delegate as litert_delegate
from .litert.environment import RegisteredAccelerator as RegisteredAccelerator
from .litert.environment import register_accelerator as register_accelerator
from .litert.interpreter import LiteRtInterpreter as LiteRtInterpreter

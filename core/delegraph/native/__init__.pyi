from .litert.delegate import litert_delegate as litert_delegate
from .litert.interpreter import LiteRtInterpreter as LiteRtInterpreter

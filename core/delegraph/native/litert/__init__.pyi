from .compiled_model import compiled_model as compiled_model
from .compiled_model import placement_of as placement_of
from .environment import RegisteredAccelerator as RegisteredAccelerator
from .environment import register_accelerator as register_accelerator

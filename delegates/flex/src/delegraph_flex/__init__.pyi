from .conversion import convert as convert
from .rewriting import CannotFlexify as CannotFlexify
from .rewriting import flexify as flexify

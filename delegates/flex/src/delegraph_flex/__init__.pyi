from .conversion import convert as convert
from .rewrite import CannotFlexify as CannotFlexify
from .rewriting import flexify as flexify

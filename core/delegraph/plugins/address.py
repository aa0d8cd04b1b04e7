"""Text form of a delegate: ``name``, ``dist:name``, ``dist:name:key=value,key=value``."""

from __future__ import annotations

import re

from delegraph.errors import PluginOptionError
from delegraph.lazy_dataclass import dataclass

_GRAMMAR = r"(?:(?P<distribution>[^:=,]+):)?(?P<name>[^:=,]+)(?::(?P<options>[^:=,]+=.*))?"


def canonical_name(name: str) -> str:
    """Return the name of a distribution in the spelling of package indexes.

    ``packaging.utils`` has the same function, but importing it takes longer than finding all
    plugins.

    >>> canonical_name("My_Delegates.Fast")
    'my-delegates-fast'

    Source:
        PEP 503, Normalized Names.
    """
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class DelegateAddress:
    """The name and options by which a user requests a delegate.

    The grammar is ``[distribution:]name[:key=value[,key=value]...]``. The options start at the
    first part with a ``=``. Names never contain a ``=``, so this is unambiguous; values may contain
    colons.

    Attributes:
        name: the delegate's name.
        distribution: distribution that must provide the delegate; None means any.
        options: ``key=value,key=value``; empty for none.
    """

    name: str
    distribution: str | None = None
    options: str = ""

    @classmethod
    def parse(cls, text: str) -> DelegateAddress:
        """Parse a delegate address ``distribution:name:options``.

        >>> DelegateAddress.parse("flex")
        DelegateAddress(name='flex', distribution=None, options='')
        >>> DelegateAddress.parse("my-dist:flex:cache=C:/tmp,threads=2")
        DelegateAddress(name='flex', distribution='my-dist', options='cache=C:/tmp,threads=2')

        Raises:
            PluginOptionError: the text does not follow the grammar.
        """
        match = re.fullmatch(_GRAMMAR, text.strip(), re.DOTALL)
        if match is None:
            why = "an option without '=' has no value"
            if not text.strip():
                why = "it is empty"
            elif "," in text and ":" not in text:
                why = "several delegates are named one by one, not with ','"
            raise PluginOptionError(
                f"delegate {text!r} cannot be read, expected 'name', 'dist:name' or "
                f"'name:key=value,key=value'; {why}"
            )
        return cls(match["name"], match["distribution"], match["options"] or "")

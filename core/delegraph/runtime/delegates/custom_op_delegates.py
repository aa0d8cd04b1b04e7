"""Installed delegates for a model's custom operators and compiled partitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from delegraph.delegation.compiled_partition import CUSTOM_OP as CUSTOM_OP
from delegraph.delegation.delegate import Delegate
from delegraph.errors import PluginError
from delegraph.graph.model import Model
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.compiled_partitions import compiled_delegate, compilers_of
from delegraph.runtime.delegates.requested_delegates import installed_delegate, isolated
from delegraph.runtime.isolation.isolation import AS_SPECIFIED, Isolation
from delegraph.runtime.isolation.source import DelegateSource


def compiled_by(model: Model, isolation: Isolation = AS_SPECIFIED) -> list[Delegate]:
    """Return the delegates that can run the partitions compiled into a model file, in order.

    Raises:
        MalformedModelError: a compiled partition is damaged.
    """
    return [_of_compiler(compiler, isolation) for compiler in compilers_of(model)]


def _of_compiler(compiler: DelegateAddress, isolation: Isolation) -> Delegate:
    try:
        offer = installed().find(compiler)
    except PluginError:  # the delegate rejects its nodes and gives the reason
        return compiled_delegate(compiler)
    isolation = isolation.of(offer.spec)
    if isolation.is_wanted:
        return isolated(DelegateSource(offer.address, is_compiled=True), isolation.timeout)
    isolation.require_no_timeout(f"delegate {compiler.name!r}")
    return compiled_delegate(compiler)


def called_for(
    custom_ops: Collection[str],
    asked_for: Sequence[Delegate] = (),
    isolation: Isolation = AS_SPECIFIED,
) -> list[Delegate]:
    """Return installed delegates that claim the model's custom operators, without being named.

    Those in *asked_for*, which the user requested, are left out.

    Raises:
        PluginError: the code of a delegate's plugin failed.
    """
    if not custom_ops:
        return []
    names = {delegate.name() for delegate in asked_for}
    offers = installed().for_custom_ops(custom_ops)
    wanted = [offer.address for offer in offers if offer.spec.name not in names]
    return [installed_delegate(address, None, isolation) for address in wanted]

"""Output of ``--delegate help`` and ``--delegate NAME:help``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import console, heading, print_paragraph, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.delegation.capabilities import Capabilities
    from delegraph.plugins.options import Option
    from delegraph.plugins.plugin_set import Offer
    from delegraph.plugins.specs import DelegateSpec


def print_delegate_help(wanted: Sequence[str], *, compiles: bool = False) -> None:
    """Print the options of delegates, without importing their heavy modules.

    *wanted* is ``help`` for all installed delegates, ``NAME:help`` or ``dist:NAME:help`` for one.
    If *compiles*, only names are printed of delegates that do not compile ahead of time.

    Raises:
        PluginError: no usable plugin offers a requested delegate, or it does not compile.
    """
    from delegraph.plugins import installed

    out = console()
    if "help" in wanted:
        _print_offers(out, installed().by_rank(), compiles=compiles)
        return
    names = [name.removesuffix(":help") for name in wanted]
    if compiles:
        from delegraph.plugins.address import DelegateAddress
        from delegraph.tools.compiling import compilable_offer

        offers = [compilable_offer(DelegateAddress.parse(name)) for name in names]
    else:
        offers = [installed().find(name) for name in names]
    _print_each(out, offers)


def _print_offers(out: Console, offers: Sequence[Offer], *, compiles: bool) -> None:
    """Print the delegates, or those that compile, with a line that names the others."""
    if not offers:
        out.print("no delegates are installed; 'delegraph plugins list' says what there is")
    if not compiles:
        _print_each(out, offers)
        return
    from delegraph.tools.compiling import is_compilable

    able = [offer for offer in offers if is_compilable(offer)]
    _print_each(out, able)
    others = ", ".join(offer.spec.name for offer in offers if offer not in able)
    if others:
        if able:
            out.print()
        text = f"without a compiler for the file, applied when a model is loaded: {others}"
        print_paragraph(out, text, indent=0)


def _print_each(out: Console, offers: Sequence[Offer]) -> None:
    for number, offer in enumerate(offers):
        if number:
            out.print()
        _print_offer(out, offer)


def isolation_text(spec: DelegateSpec) -> str:
    """Text that says that a delegate has a process of its own, and how long an invoke may take."""
    limit = "" if spec.timeout is None else f", {spec.timeout:g} s for an invoke"
    return f"runs in a process of its own{limit} (--isolate none: in this one)"


def capabilities_of(offer: Offer) -> Capabilities:
    """Return the claims of a delegate; its heavy module is imported.

    Raises:
        PluginError: the delegate cannot be created with its default options, or declares no claims.
    """
    from delegraph.errors import PluginLoadError, in_words
    from delegraph.plugins import installed

    delegate = installed().create_delegate(offer.address)
    try:
        return delegate.capabilities()
    except Exception as error:
        raise PluginLoadError(f"{offer.address}.capabilities(): {in_words(error)}") from error


def print_claims(out: Console, offer: Offer) -> None:
    """Print the claims of a delegate and its tolerances, grouped by form."""
    capabilities = capabilities_of(offer)
    operators: dict[str, list[str]] = {}
    for claim in capabilities.claims:
        operators.setdefault(claim.form, []).extend(claim.operators)
    heading(out, f"What {offer.spec.name} takes")
    if not operators:
        out.print("  it does not say")
    print_table(out, ("form", "operators"), [(f, ", ".join(ops)) for f, ops in operators.items()])
    tolerances = [(name, str(tolerance)) for name, tolerance in capabilities.tolerance.items()]
    if tolerances:
        out.print()
    print_table(out, ("results of", "tolerance"), tolerances)


def print_delegate(out: Console, offer: Offer) -> None:
    """Print summary, rank and options of a delegate after an empty line."""
    out.print()
    _print_offer(out, offer)


def _print_offer(out: Console, offer: Offer) -> None:
    from delegraph.plugins.options import describe_options

    out.print(f"Delegate {offer.spec.name}", style="bold")
    out.print(f"  {offer.spec.summary}")
    out.print(f"  rank {offer.spec.rank}")
    if offer.spec.isolate == "process":
        out.print(f"  {isolation_text(offer.spec)}")
    options = describe_options(offer.spec)
    if not options:
        out.print("  no options")
        return
    out.print()
    rows = [(o.name, _narrow(o.type), _meaning(o)) for o in options]
    print_table(out, ("option", "type", "meaning"), rows)
    out.print()
    example = next((o for o in options if _other_value(o)), options[0])
    value = _other_value(example) or "VALUE"
    out.print(f"  For example: --delegate {offer.spec.name}:{example.name}={value}")


def _other_value(option: Option) -> str:
    """Value for an example, different from the default; empty for options of any text.

    >>> from delegraph.plugins.options import Option
    >>> _other_value(Option("link", "one of 'pci', 'usb'", "pci", ""))
    'usb'
    >>> _other_value(Option("threads", "int, 0 or more", "0", ""))
    '1'
    """
    default = option.default or ""
    switched = {"true": "false", "false": "true"}
    if default in switched:
        return switched[default]
    words: list[str] = [word for word in re.findall(r"'(.+?)'", option.type) if word != default]
    if words and option.type.startswith("one of"):
        return words[0]
    return _another_number(option) if default.isdecimal() else ""


def _another_number(option: Option) -> str:
    """Return the default plus 1, or minus 1 where the default is the largest value."""
    default, limits = int(option.default or "0"), re.findall(r"\d+", option.type)
    is_largest = len(limits) > 1 and default == int(limits[-1])
    return str(default - 1 if is_largest else default + 1)


def _meaning(option: Option) -> str:
    """Help of an option with its default, as ``--help`` shows it."""
    default = "required" if option.default is None else f"default: {option.default.strip('()')}"
    return f"{option.help} [{default}]".lstrip()


def _narrow(type_text: str) -> str:
    """Return the text of a type without quotes, so that other columns have more room.

    >>> _narrow("one of 'pci', 'usb'")
    'one of pci, usb'
    """
    return type_text.replace("'", "")

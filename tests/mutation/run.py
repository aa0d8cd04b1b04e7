"""Changes the code in small ways and tells which changes no test notices.

python tests/mutation/run.py [TARGET or MODULE ...] [--sample PERCENT] [--seed N]
    [--budget SECONDS] [--again] [--report] [--minimum PERCENT] [--targets FILE]

Runs in the folder of the project. Verdicts are kept there in .mutants/, so a stopped run goes on
where it was. How to read the report: docs/mutation-tests.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.campaign import Campaign, Verdicts, sampled
from mutation.judging import Verdict
from mutation.mutants import Module, Mutant
from mutation.report import percent_of, row, text, write_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGETS = Path(__file__).with_name("targets.toml")
KEPT = Path(".mutants")


def read_toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def modules_of(source: Path) -> list[Module]:
    """Return the import names of the modules below a folder, or of one file."""
    files = sorted(source.rglob("*.py")) if source.is_dir() else [source]
    package = source if source.is_dir() else source.parent
    while (package.parent / "__init__.py").exists():
        package = package.parent
    return [Module(_imported_name(file.relative_to(package.parent)), file) for file in files]


def _imported_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def is_wanted(target: str, module: str, wanted: Sequence[str]) -> bool:
    """Whether a module was requested: by its target, its name or the end of its name."""
    return not wanted or any(
        name in (target, module) or module.endswith(f".{name}") for name in wanted
    )


def show(mutant: Mutant, verdict: Verdict) -> None:
    place = f"{mutant.module.name}:{mutant.lines.start}"
    print(f"{verdict.outcome:9} {verdict.seconds:6.2f} s  {place}: {mutant.name}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wanted", nargs="*", help="targets, or modules by the end of their name")
    parser.add_argument("--targets", type=Path, default=TARGETS, help="a TOML file")
    parser.add_argument("--sample", type=float, default=100.0, help="percent of mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of tests a mutant")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds before it hangs")
    parser.add_argument("--again", action="store_true", help="judge survivors again")
    parser.add_argument("--report", action="store_true", help="show what is known, judge nothing")
    parser.add_argument("--minimum", type=float, default=90.0, help="percent for exit code 0")
    return parser.parse_args()


@dataclass
class Target:
    """Modules that are changed, and the tests that judge them: a table of targets.toml."""

    modules: list[Module]
    tests: list[str]
    verdicts: Verdicts

    def mutants(self) -> Iterator[Mutant]:
        """Yield the mutants of all modules."""
        for module in self.modules:
            yield from module.mutants

    def judge(self, options: argparse.Namespace) -> list[str]:
        """Judge the waiting mutants, and return the tests that fail without a mutant."""
        waiting = [
            mutant
            for mutant in sampled(self.mutants(), options.sample, options.seed)
            if is_waiting(self.verdicts.of(mutant), again=options.again)
        ]
        if not waiting:
            return []
        campaign = Campaign(self.tests, self.verdicts, options.budget, options.patience, show)
        return campaign.run(self.modules, waiting)


def targets(options: argparse.Namespace) -> Iterator[Target]:
    """Yield the targets with their requested modules."""
    for name, about in read_toml(options.targets).items():
        found = [
            m for m in modules_of(Path(about["modules"])) if is_wanted(name, m.name, options.wanted)
        ]
        if found:
            yield Target(found, about["tests"], Verdicts(KEPT / f"{name}.jsonl"))


def main() -> int:
    options = arguments()
    explanations = read_toml(options.targets.with_name("explanations.toml"))
    rows, failing = [], []
    for target in targets(options):
        if not options.report:
            failing += target.judge(options)
        rows += [
            row(module.name, module.mutants, target.verdicts, explanations.get(module.name, {}))
            for module in target.modules
        ]
    write_json(rows, KEPT / "report.json")
    print(text(rows))
    for test in failing:
        print(f"fails without a mutant, so it judged none: {test}")
    percent = percent_of(rows)
    print(f"{percent:.1f} % killed of what can be (at least {options.minimum:g} wanted)")
    return 0 if percent >= options.minimum else 1


def is_waiting(verdict: Verdict | None, *, again: bool) -> bool:
    """Whether a mutant must be judged: it has no verdict, or is a survivor to try *again*."""
    return verdict is None or (again and verdict.outcome != "killed")


if __name__ == "__main__":
    sys.exit(main())

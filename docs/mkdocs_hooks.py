"""What ``make docs`` adds to the pages of this folder: pages that exist elsewhere already.

- READMEs of the delegates, the changelog and the pages for contributors, from the repository;
- a reference page for each public package, from its docstrings, and a page for each notebook;
- at the top of each guide, how long it takes to read;
- links: in the repository they lead to files, on the site to the pages made of them.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(Path(__file__).parent))

from docstring_markup import markdown

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "delegraph"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BLOB = f"{PROJECT['urls']['Source']}/blob/main/"
"""Address of the repository's files."""

INCLUDED = {
    "delegates/numba_cpu.md": "delegates/numba_cpu/README.md",
    "delegates/flex.md": "delegates/flex/README.md",
    "delegates/edgetpu.md": "delegates/edgetpu/README.md",
    "delegates/jax.md": "delegates/jax/README.md",
    "delegates/openvino.md": "delegates/openvino/README.md",
    "delegates/example.md": "plugins_example/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages of the site, and the files outside this folder that they are."""

PACKAGES = (
    "operators",
    "arithmetic",
    "delegation",
    "plugins",
    "graph",
    "schema",
    "memory",
    "micro",
    "compiled_model",
    "native",
    "tools",
    "aot",
    "scale",
    "testing",
    "json_records",
    "errors",
)
"""Public packages of the core, each with a page of its own beside that of ``delegraph``."""

IMPORTED_BY_ENUMS = "delegraph.schema.model_enums"
"""Module with enumerations that ``schema.enums`` imports: its own page does not show them."""

WITH_BASES = ("Interpreter", "LiteRtInterpreter")
"""Classes whose bases nobody else sees: their members are shown as the class's own."""

GUIDES = ("Start", "How-to")
"""Parts of the navigation whose pages say how long they take to read."""

BELOW_GUIDES = 0.2
"""Weight in the search of the changelog and of docstrings: pages that explain a word come first."""

INSTALL = "[README](../README.md#install) says how."
"""Words of the home page in whose place the site has README's part on it."""

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WORDS_A_MINUTE, LINES_A_MINUTE = 220, 40  # of prose; of code and outputs
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s]+)", re.MULTILINE)
EXPORT = re.compile(r"^from \.([\w.]+) import \(?\s*(\w+) as ", re.MULTILINE)
NAMESPACE = re.compile(r"^from \. import (\w+) as ", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the address of the repository."""
    config.repo_url = PROJECT["urls"]["Source"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for uri, path in INCLUDED.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    pages = {"python": python_page(), "command-line": COMMAND_LINE}
    pages |= {name: package_page(name) for name in PACKAGES}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        text = notebook_page(json.loads(notebook.read_text(encoding="utf-8")))
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files of the repository by links to pages of the site."""
    uri = page.file.src_uri
    folder = posixpath.dirname(INCLUDED.get(uri, f"docs/{uri}"))

    def on_site(match: re.Match[str]) -> str:
        target, hash_, anchor = match[2].partition("#")
        if target.startswith(BLOB):
            path = target.removeprefix(BLOB)
        elif "://" in target or not target or uri.startswith("reference/"):
            return match[0]
        else:
            path = posixpath.normpath(posixpath.join(folder, target))
        found = site_uri(path, files)
        link = BLOB + path if found is None else posixpath.relpath(found, posixpath.dirname(uri))
        return match[1] + link + hash_ + anchor

    if uri.startswith("reference/") or uri == "changelog.md":
        page.meta["search"] = {"boost": BELOW_GUIDES}
    if uri == "index.md":
        markdown = markdown.replace(INSTALL, install_words())
    text = LINK.sub(on_site, markdown)
    part = [section.title for section in page.ancestors][-1:]
    if part and part[0] in GUIDES:
        text = re.sub(r"\A(# .*\n)", rf"\1\n*{reading_time(text)}*\n", text)
    return text + sources() if uri == "examples/README.md" else text


def install_words() -> str:
    """Return README's section on installing, with links relative to this folder."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    words = readme.split("<!-- install -->\n")[1].split("<!-- installed -->")[0]
    return LINK.sub(r"\1../\2", words)


def reading_time(text: str) -> str:
    """How long a page takes to read: "About 5 minutes"."""
    code = sum(block.count("\n") for block in FENCE.findall(text))
    words = len(FENCE.sub("", text).split())
    minutes = max(1, round(words / WORDS_A_MINUTE + code / LINES_A_MINUTE))
    return f"About {minutes} minute{'s' if minutes > 1 else ''} to read"


def notebook_page(notebook: dict[str, Any]) -> str:
    """Page of a notebook: its texts, its code, and what the code printed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text'])}```")
            else:
                html = output["data"].get("text/html")
                parts.append("".join(html or ["```text\n", *output["data"]["text/plain"], "\n```"]))
    return "\n\n".join(parts)


def site_uri(path: str, files: Files) -> str | None:
    """Return the site's address of a file of the repository; None if the site does not have it."""
    for uri, included in INCLUDED.items():
        if path == included:
            return uri
    uri = path.removeprefix("docs/").replace(".ipynb", ".md")
    found = files.get_file_from_path(uri) if uri != path else None
    if found is None:
        return None
    is_shown = found.inclusion.is_included()  # type: ignore[no-untyped-call]  # MkDocs has no type
    return uri if is_shown else None


def sources() -> str:
    """Return the example scripts by name."""
    scripts = sorted((ROOT / "docs" / "examples").glob("*.py"))
    return "".join(
        f"\n## {script.name}\n\n```python\n{script.read_text(encoding='utf-8')}```\n"
        for script in scripts
    )


def exports(package: str) -> list[tuple[str, str]]:
    """Return the names that a package's stub exports, each with its module."""
    stub = CORE.parent.joinpath(*package.split("."), "__init__.pyi")
    if not stub.exists():
        return []
    found = EXPORT.findall(stub.read_text(encoding="utf-8"))
    return [(name, f"{package}.{module}") for module, name in found]


def summary(module: str, name: str = "") -> str:
    """Return the first line of the docstring of a module, or of a class or function in it."""
    path = CORE.parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef)
    named = [n for n in tree.body if isinstance(n, kinds) and n.name == name] if name else [tree]
    text = next((ast.get_docstring(node) or "" for node in named), "")
    return markdown(text.split("\n\n")[0].replace("\n", " "))


def python_page() -> str:
    """Return the page about ``import delegraph``: its public names, in full or as links."""
    packages = table(
        ("package", ""),
        [(f"[`{p}`]({p}.md)", summary(f"delegraph.{p}")) for p in PACKAGES],
    )
    names = exports("delegraph")
    linked = table(
        ("name", ""),
        [(f"[`{name}`][{module}.{name}]", summary(module, name)) for name, module in names],
    )
    full = [
        entry("delegraph", name)
        for name, module in names
        if module.split(".")[1] not in PACKAGES or module == IMPORTED_BY_ENUMS
    ]
    return "\n\n".join(["# delegraph", packages, "What `import delegraph` offers:", linked, *full])


def entry(package: str, name: str) -> str:
    """Return the mkdocstrings block that shows a public name in full."""
    options = "\n    options:\n      inherited_members: true" if name in WITH_BASES else ""
    return f"::: {package}.{name}{options}"


def table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    """Return a table of two columns."""
    return "\n".join(f"| {left} | {right} |" for left, right in [head, ("---", "---"), *rows])


def package_page(name: str) -> str:
    """Page of a public package: the names and modules that its stub exports, or the module."""
    package = f"delegraph.{name}"
    stub = CORE / name / "__init__.pyi"
    modules = NAMESPACE.findall(stub.read_text(encoding="utf-8")) if stub.exists() else []
    names = [name for name, _ in exports(package)]
    shown = [entry(package, name) for name in [*names, *modules]] or [f"::: {package}"]
    return "\n\n".join([f"# {package}", summary(package), *shown])


COMMAND_LINE = """# Every command and option

What `delegraph COMMAND --help` prints; [the guide](../cli.md) shows what each command is for.

::: mkdocs-click
    :module: delegraph.cli
    :command: delegraph
    :prog_name: delegraph
    :depth: 1
    :style: plain
    :list_subcommands: true
"""

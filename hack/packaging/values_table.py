"""The table of a chart's values, read from its values.yaml: keys, what they are by default, and the comments above."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.packaging import chart_images
from hack.packaging.errors import UndocumentedValue

IMAGES = "slurm.images"
"""A mapping whose names are not in values.yaml."""

HEADER = """\
<!-- Generated from the values.yaml of each chart by 'python -m hack.packaging write'. Do not edit. -->

# Values of the charts

Set them with `--set name=value` or in a file given with `--values`. A misspelt name is refused.

"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value a user can set.

    Attributes
    ----------
    path
        Its name, with dots, as ``--set`` takes it.
    default
        As JSON.
    text
        The comment above it, in one line.
    """

    path: str
    default: str
    text: str


def values(file: Path) -> Iterator[Value]:
    """Read the values in order.

    A mapping that holds values is no value itself; an empty one is, and so is one written in braces.

    Raises
    ------
    UndocumentedValue
        If there is no comment right above a value.
    """
    source = file.read_text(encoding="utf-8")
    root = yaml.compose(source, Loader=yaml.SafeLoader)
    lines = source.splitlines()
    if not isinstance(root, yaml.MappingNode):
        raise TypeError(f"{file} holds no mapping")
    yield from _walk(root, (), lines)


def _walk(mapping: yaml.MappingNode, above: tuple[str, ...], lines: list[str]) -> Iterator[Value]:
    for key, value in mapping.value:
        path = (*above, str(key.value))
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            yield from _walk(value, path, lines)
            continue
        text = _comment_above(lines, key.start_mark.line)
        if not text:
            raise UndocumentedValue(".".join(path))
        default, name = yaml.safe_load(yaml.serialize(value)), ".".join(path)
        yield Value(name, json.dumps(default), text)
        if name == IMAGES:
            yield from (Value(f"{name}.{one}", '""', about) for one, about in chart_images.texts().items())


def _comment_above(lines: list[str], line: int) -> str:
    comments: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        comments.insert(0, lines[line].strip().lstrip("#").strip())
    return " ".join(comments)


def page(charts: Iterable[Path]) -> str:
    """Make the page about the values of charts, in Markdown."""
    return HEADER + "\n".join(_section(chart) for chart in charts)


README = """\
<!-- Generated from Chart.yaml and values.yaml by 'python -m hack.packaging write'. Do not edit. -->

# {name}

{description}.

"""


def readmes(charts: Iterable[Path]) -> dict[str, str]:
    """The page of each chart that is part of its package, by its path from the root of the repository."""
    found = {}
    for chart in charts:
        about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
        found[f"helm/{chart.name}/README.md"] = README.format(**about) + _section(chart, "Values")
    return found


def _section(chart: Path, title: str = "") -> str:
    rows = "".join(
        f"| `{value.path}` | `{value.default}` | {value.text.replace('|', '&#124;')} |\n"
        for value in values(chart / "values.yaml")
    )
    return f"## {title or f'helm/{chart.name}'}\n\n| value | default | meaning |\n|---|---|---|\n{rows}"

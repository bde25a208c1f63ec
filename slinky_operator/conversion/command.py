"""The command `slurm-operator convert`: files in, values or manifests out, the report, the exit status."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from slinky_operator.conversion import documents, kinds, report, values
from slinky_operator.conversion.draft import Draft
from slinky_operator.conversion.errors import ConversionError, NotOfSlinky, SeveralClusters, UnreadableInput
from slinky_operator.conversion.report import Entry, Fate, Report

NOTHING_LOST: Final = 0
UNUSABLE: Final = 2
SOMETHING_LOST: Final = 3

STDIN: Final = "-"

DESCRIPTION: Final = """\
Convert values files of Slinky's charts slurm and slurm-operator (0.1 to 1.3), or objects of Slinky's kinds, to values
of this operator's charts or to its manifests. They are printed on stdout; a report, key by key, goes to stderr.
Nothing is installed or changed, and Kubernetes is not asked.
"""

EPILOG: Final = """\
examples:
  slurm-operator convert -f values.yaml > ours.yaml
  helm get values slurm -n slurm | slurm-operator convert -f - > ours.yaml
  slurm-operator convert -f base.yaml -f site.yaml > ours.yaml     the second takes precedence, as with helm
  slurm-operator convert --chart slurm-operator -f operator-values.yaml > ours-operator.yaml
  helm get manifest slurm -n slurm | slurm-operator convert -f - --kinds > manifests.yaml
  slurm-operator convert -f values.yaml -o json 2> report.json > ours.json

exit status:
  0  nothing that was in effect is missing
  3  something is: see "lost" and "without counterpart" in the report
  2  the input is neither values of Slinky's charts nor objects of its kinds, or cannot be read
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="slurm-operator convert",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="values, or a stream of objects; - for stdin. Several files are merged as helm merges values",
    )
    made.add_argument(
        "--chart", choices=values.CHARTS, help="whose values these are (default: recognized by their keys)"
    )
    made.add_argument(
        "--kinds", action="store_true", help="print manifests (Cluster, NodeSet, LoginSet, Token) instead of values"
    )
    made.add_argument(
        "--name", default="slurm", help="name of the Cluster in manifests, if the input has none (%(default)s)"
    )
    made.add_argument("-n", "--namespace", default="", help="namespace in manifests, if the input has none")
    made.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="format of the result; with json also of the report",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    """Convert, print, and return the exit status.

    Parameters
    ----------
    arguments
        The command line after `convert`.
    """
    options = parser().parse_args(arguments)
    try:
        drafts, found = convert(options.filename, options.chart)
        printed = _printed(drafts, found, options)
    except ConversionError as error:
        sys.stderr.write(f"slurm-operator convert: {error}\n")
        return UNUSABLE
    sys.stdout.write(printed)
    as_json = options.output == "json"
    sys.stderr.write(documents.dump_json(report.as_object(found)) if as_json else report.as_text(found))
    return NOTHING_LOST if found.lossless else SOMETHING_LOST


def convert(names: Sequence[str], chart: str | None = None) -> tuple[list[Draft], Report]:
    """Convert files.

    Parameters
    ----------
    names
        Paths, or `-` for stdin.
    chart
        Whose values they are; `None` to recognize them.

    Raises
    ------
    ConversionError
        The input cannot be converted.
    """
    left = documents.MAX_BYTES
    inputs: list[tuple[str, dict[str, Any]]] = []
    for name in names:
        text, source = _text(name, left)
        left -= len(text.encode())
        inputs += [(source, document) for document in documents.load(text, source)]
    objects = [kinds.is_object(document) for _, document in inputs]
    if not inputs:
        raise NotOfSlinky(f"{', '.join(names)}: empty")
    if all(objects) and chart is None:
        return kinds.convert(inputs)
    if any(objects):
        source = inputs[objects.index(True)][0]
        raise NotOfSlinky(f"{source}: objects and values together: convert each by itself")
    whole, overridden = _merged(inputs)
    source = ", ".join(dict.fromkeys(source for source, _ in inputs))
    draft, found = values.convert(whole, chart or values.chart_of(whole, source), source)
    found.entries += overridden
    return [draft], found


def _merged(inputs: Sequence[tuple[str, dict[str, Any]]]) -> tuple[dict[str, Any], list[Entry]]:
    """Several files as helm merges them, and what later ones have overridden."""
    whole: dict[str, Any] = {}
    overridden: list[Entry] = []
    for source, document in inputs:
        why = f"{source} has another value, which counts"
        overridden += [Entry(key, Fate.OVERRIDDEN, "", why=why) for key in documents.overridden(whole, document)]
        whole = documents.merged(whole, document)
    return whole, overridden


def _printed(drafts: Sequence[Draft], found: Report, options: argparse.Namespace) -> str:
    made: list[dict[str, Any]]
    if options.kinds:
        if any(draft.chart for draft in drafts):
            raise NotOfSlinky(f"{found.source}: values of the chart slurm-operator have no objects: leave --kinds out")
        for draft in drafts:
            draft.namespace = draft.namespace or options.namespace
            for number, one in enumerate(draft.release.get("extraObjects", ())):
                if not isinstance(one, dict):
                    why = "a text, perhaps of a template: values have it, manifests do not"
                    found.entries.append(Entry(f"extraObjects[{number}]", Fate.LOST, "", why=why))
        made = [one for draft in drafts for one in draft.objects(options.name)]
    else:
        if len(drafts) > 1:
            names = ", ".join(f"{draft.namespace}/{draft.name}" for draft in drafts)
            raise SeveralClusters(
                f"{found.source}: several Clusters ({names}) do not fit into one values file: use --kinds"
            )
        made = [draft.values() for draft in drafts]
    if options.output == "json":
        return documents.dump_json(made if options.kinds else made[0])
    return documents.dump(made)


def _text(name: str, left: int) -> tuple[str, str]:
    """A file's text, not longer than what is left, and its name for messages."""
    source = "stdin" if name == STDIN else name
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(left + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(left + 1)
        if len(content) > left:
            raise UnreadableInput(f"{source}: all inputs together have more than {documents.MAX_BYTES >> 20} MiB")
        # What helm prints before values, as `helm get values` does.
        return re.sub(r"\AUSER-SUPPLIED VALUES:\n|\ACOMPUTED VALUES:\n", "", content.decode()), source
    except OSError as error:
        raise UnreadableInput(f"{source}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UnreadableInput(f"{source}: no UTF-8 text") from None

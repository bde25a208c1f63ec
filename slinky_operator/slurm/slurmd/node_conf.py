"""What a slurmd registers with: the keys of its node line.

CPUs and RealMemory are set, with one exception. Without them slurmd registers the machine's (measured), and with
several pods on a machine Slurm would allocate each of its cores several times. The exception is a template with a
complete command line of slurmd, as in Slinky's charts: what it does not limit is the machine's there, and users rely on
it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet

DEFAULT_CPUS: Final = 1
"""CPUs of a node whose pod requests none."""

DEFAULT_MEMORY_MIB: Final = 512
"""RealMemory of a node whose pod requests none; with more than the machine has, Slurm would reject the node."""

_SUFFIXES: Final[Mapping[str, Decimal]] = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(1000),
    "M": Decimal(1000) ** 2,
    "G": Decimal(1000) ** 3,
    "T": Decimal(1000) ** 4,
    "P": Decimal(1000) ** 5,
    "E": Decimal(1000) ** 6,
    "Ki": Decimal(1024),
    "Mi": Decimal(1024) ** 2,
    "Gi": Decimal(1024) ** 3,
    "Ti": Decimal(1024) ** 4,
    "Pi": Decimal(1024) ** 5,
    "Ei": Decimal(1024) ** 6,
}
_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkKMGTPE]?i?)")
# What a shell treats as one quoted text, and which backslashes it removes between double quotes.
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\$`])')
# A word without "=" is skipped as a whole: looking for one in each of its tails would take quadratic time.
_WORD: Final = re.compile(r'([^\s=]+)(?:=("[^"]*"|\S*))?')


class InvalidQuantity(ValueError):
    """A text that is not a Kubernetes quantity."""


class UnbalancedQuotes(ValueError):
    """A value of `--conf` that begins with a quote which does not end where the value ends."""


def quantity(value: object) -> Decimal:
    """The number of a Kubernetes quantity, in units or bytes."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or match[2] not in _SUFFIXES:
        raise InvalidQuantity(f"{value!r} is no quantity")
    try:
        return Decimal(match[1]) * _SUFFIXES[match[2]]
    except InvalidOperation as error:
        raise InvalidQuantity(f"{value!r} is no quantity") from error


def unquoted(value: str) -> str:
    """A value of `--conf` without a pair of quotes around all of it, of either kind.

    Slurmd treats such quotes as part of the first key and drops all keys without an error (measured); only a shell
    would remove them. Quotes around the value of a single key stay.

    Raises
    ------
    UnbalancedQuotes
        It begins with a quote and is not one quoted text.
    """
    value = value.strip()
    if not value.startswith(("'", '"')):
        return value
    whole = _QUOTED.fullmatch(value)
    if whole is None:
        raise UnbalancedQuotes(
            f"begins with {value[0]} and is not quoted as a whole: write it without quotes,"
            " for instance Features=gpu Gres=gpu:2"
        )
    return (whole[1] if whole[1] is not None else _ESCAPED.sub(r"\1", whole[2])).strip()


def pairs(text: str) -> dict[str, str]:
    """The keys of a node line with their values, as written; a later one replaces an earlier one of any case."""
    found: dict[str, tuple[str, str]] = {}
    for word in _WORD.finditer(text):
        if word[2] is not None:
            _put(found, word[1], word[2])
    return dict(found.values())


def cpus(resources: Mapping[str, Any]) -> int:
    """CPUs a container may use, rounded to whole ones: its limit, else its request, at least one.

    Raises
    ------
    InvalidQuantity
        The value is not a quantity.
    """
    value = _amount(resources, "cpu")
    return DEFAULT_CPUS if value is None else max(1, math.floor(value))


def memory_mib(resources: Mapping[str, Any]) -> int:
    """MiB a container may use: its limit, else its request.

    Raises
    ------
    InvalidQuantity
        The value is not a quantity.
    """
    value = _amount(resources, "memory")
    return DEFAULT_MEMORY_MIB if value is None else max(1, math.floor(value / 1024**2))


def node_line(
    nodeset: NodeSet, resources: Mapping[str, Any], user_conf: Iterable[str] = (), *, machine: bool = False
) -> str:
    """Build the value of `--conf`.

    Parameters
    ----------
    nodeset
        Features, GRES, weight and further keys are taken from its spec.
    resources
        Resources of the slurmd container.
    user_conf
        Values of `--conf` in a user's template; their features are kept, their other keys win.
    machine
        Whether a resource without a limit is left to slurmd, which registers all that the machine has.

    Raises
    ------
    InvalidQuantity
        An amount of a resource is not a quantity.
    UnbalancedQuotes
        `spec.extraConf` begins with a quote that does not end where it ends.
    """
    spec = nodeset.spec
    line: dict[str, tuple[str, str]] = {}
    if not machine or _amount(resources, "cpu") is not None:
        _put(line, "CPUs", str(cpus(resources)))
    if not machine or _amount(resources, "memory") is not None:
        _put(line, "RealMemory", str(memory_mib(resources)))
    if spec.weight is not None:
        _put(line, "Weight", str(spec.weight))
    if spec.gres:
        _put(line, "Gres", spec.gres)
    features = [nodeset.name, *spec.features]
    for text in (*user_conf, unquoted(spec.extra_conf)):
        for key, value in pairs(text).items():
            if key.lower() in {"feature", "features"}:
                features += value.strip('"').split(",")
            else:
                _put(line, key, value)
    unique = [word for word in dict.fromkeys(features) if word]
    return " ".join([f"Features={','.join(unique)}", *(f"{key}={value}" for key, value in line.values())])


def _put(line: dict[str, tuple[str, str]], key: str, value: str) -> None:
    """Set a key, whatever its case; its position and its first spelling stay."""
    folded = key.lower()
    line[folded] = line.get(folded, (key, ""))[0], value


def _amount(resources: Mapping[str, Any], name: str) -> Decimal | None:
    for kind in ("limits", "requests"):
        value = (resources.get(kind) or {}).get(name)
        if value is not None:
            return quantity(value)
    return None

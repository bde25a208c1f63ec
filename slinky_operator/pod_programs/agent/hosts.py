"""Which host names a slurm.conf makes slurmctld look up: read the same way by the agent and by the operator.

slurmctld looks up `NodeAddr` of each node, else its `NodeHostname`, else its name, whenever it reads its files. It
leaves out nodes that are `State=FUTURE`, and those of a cloud, which have no address before they are started.
"""

import ipaddress
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

MOST: Final = 65_536
"""Names of one expression, or of one file: more nodes than that Slurm cannot have."""

_NODE: Final = "nodename"
_ADDRESS: Final = ("nodeaddr", "nodehostname", _NODE)
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def names_in(slurm_conf: str) -> Iterator[str]:
    """Names that are to be looked up for nodes of the file, those of the future included; no literal addresses."""
    for line in slurm_conf.split("\n"):
        if line[: len(_NODE) + 1].lower() != f"{_NODE}=":
            continue
        words = dict(_split(word) for word in line.split() if "=" in word)
        yield from (address for _, address in addresses(words) if not is_literal(address))


def _split(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key.lower(), value.strip('"')


def addresses(words: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Each node of a line and what is looked up for it.

    Parameters
    ----------
    words
        The line, by keys in lower case; `nodename` is one of them.
    """
    names = expand(words[_NODE])
    found = next((expand(words[key]) for key in _ADDRESS if words.get(key)), names)
    # Slurm refuses a line with another number of addresses than of nodes, but for one, which is that of all.
    shared = found * len(names) if len(found) == 1 else found
    return zip(names, shared if len(shared) == len(names) else names, strict=True)


def is_literal(address: str) -> bool:
    """Whether this is an IP address, which needs no name server."""
    if ":" not in address and not address[:1].isdigit():
        return False
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def expand(expression: str) -> tuple[str, ...]:
    """Names that a host list stands for; a text that is none, or stands for too many, stands for itself."""
    found: list[str] = []
    for word in re.split(r",(?![^\[]*\])", expression) if "[" in expression else expression.split(","):
        if "[" not in word:
            found.append(word.strip())
            continue
        pieces = [
            _numbers(piece) if index % 2 else [piece] for index, piece in enumerate(re.split(r"\[([^\]]*)\]", word))
        ]
        if not all(pieces) or len(found) + math.prod(map(len, pieces)) > MOST:
            return (expression,)
        found += map("".join, itertools.product(*pieces))
    if len(found) > MOST:
        return (expression,)
    return tuple(name for name in found if name)


def _numbers(inner: str) -> list[str]:
    """Numbers of one pair of brackets, with their padding; none if it is not such a list."""
    found: list[str] = []
    for part in inner.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return []
        first, last = match.group(1), match.group(2) or match.group(1)
        if not 0 <= int(last) - int(first) < MOST:
            return []
        found += (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    return found

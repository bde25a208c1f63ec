"""Which domains SSSD cannot reach: the agent's reading of the file that SSSD's container keeps in the pod.

A line for each domain: since when it is offline, in seconds since 1970, and its name (`containers/sssd/directory.pl`).
"""

from pathlib import Path
from typing import Final

LONGEST: Final = 32_768
"""Characters of the file that are read."""


def offline(file: Path) -> dict[str, int]:
    """Return the domains that are offline, each with the time since when.

    Raises
    ------
    OSError
        If there is no such file: SSSD does not run, or its image keeps none.
    """
    found = {}
    with file.open(encoding="ascii", errors="replace") as lines:
        for line in lines.read(LONGEST).splitlines():
            since, _, name = line.partition(" ")
            if name and since.isdecimal():
                found[name] = int(since[:12])
    return found

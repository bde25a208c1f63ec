"""The slurmdbd.conf of a trial: what a slurmdbd can check of a configuration without a database. Pure.

slurmdbd reads and checks every key, and loads its plugins, before it looks for its database; then it logs that the
database must be up. Measured with 24.11 and 26.05: an unknown key, a value that does not fit, a plugin or folder that
is missing end it within 30 ms with exit code 1 and its reason; a good file brings it to the database within 50 ms. So
the trial has the user's keys, and a database at a port of its own pod at which nobody listens. It has no password, no
key of the Cluster, and no other host to ask.

Neither slurmdbd notices here what it never notices: `PrivateData`, `Parameters` or `CommunicationParameters` with
unknown words, `MaxQueryTimeRange` that is no time.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import RUN_FOLDER
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, parse_lines

FOLDER: Final = "/trial"
"""Where the trial has its keys and what its slurmdbd has said."""

GIVEN: Final = "/trial-conf"
"""Where the file is mounted, readable by others than slurmdbd."""

REACHED: Final = "database must be up when starting"
"""What slurmdbd logs once it has accepted everything."""

_NOBODY_LISTENS: Final = "1"

_OWN: Final = {
    "AuthAltParameters": f"jwt_key={FOLDER}/{naming.JWT_KEY}",
    "DbdHost": "localhost",
    "DbdPort": str(naming.SLURMDBD_PORT),
    "PidFile": f"{RUN_FOLDER}/slurmdbd.pid",
    "StorageHost": "127.0.0.1",
    "StorageLoc": "trial",
    "StoragePort": _NOBODY_LISTENS,
    "StorageUser": "trial",
}
"""What replaces the keys by which the real one finds its database, and is found."""

_REMOVED: Final = frozenset({"dbdaddr", "dbdbackuphost", "storagebackuphost", "storagepass", "storagepassscript"})
"""Keys that name other hosts, or are secret."""

_ARCHIVES: Final = frozenset({"archivedir", "archivescript"})
"""Keys with a path that must exist."""


def derive(text: str, unmounted: Collection[str] = ()) -> str | None:
    """Write the slurmdbd.conf of a trial.

    Parameters
    ----------
    text
        The real file, as `slurmdbd_conf.render` writes it.
    unmounted
        Folders that the trial's pod does not have: paths of archives below them are not checked.

    Returns
    -------
    str or None
        `None` for a file that the operator has not written.
    """
    words = parse_lines(text)
    if isinstance(words, TextProblem):
        return None
    replaced = {key.lower() for key in _OWN}
    kept = [
        word
        for word in words
        if word.folded not in replaced | _REMOVED
        and not (word.folded in _ARCHIVES and _is_below(word.value, unmounted))
    ]
    lines = sorted((*(Directive(*own) for own in _OWN.items()), *kept), key=lambda word: word.folded)
    return "".join(f"{line}\n" for line in lines)


def _is_below(path: str, folders: Collection[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)

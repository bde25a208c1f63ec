"""The Secrets of accounting: what they must hold, what they hold, and what is wrong with what users give. Pure.

====================================  ==========================================================================
Secret                                holds
====================================  ==========================================================================
`<cluster>-database-password`         the generated password; written once, and put back if it is lost
`<cluster>-database`                  the statements with which MariaDB starts, and the password once more
`<cluster>-accounting`                slurmdbd.conf, and the public keys of tokens
the one of `database.passwordRef`     the user's password; only read
====================================  ==========================================================================

MariaDB sets the password at each start, so the one in the Secret is always the one that counts: after a change both
daemons are restarted with it. Their pods carry a digest of what they mount. It is keyed, so that nobody who may read
pods can try passwords, with the first keys of the Cluster (`SALT`), whatever becomes of those: MariaDB reads none of
Slurm's keys, and slurmdbd, which reads them at its start only, is restarted for `KEYS_READ`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting import slurmdbd_conf
from slinky_operator.slurm.accounting.slurmdbd_conf import PASSWORD_RULE, SLURMDBD_CONF, Storage
from slinky_operator.slurm.tokens import key_set

PASSWORD: Final = "password"  # noqa: S105
"""Key of a password within its Secret."""

INIT_SQL: Final = "init.sql"
"""Key of MariaDB's statements, and the name of the file."""

VERSION: Final = "version"
"""Key beside slurmdbd.conf: identifies it, so that a pod does not start with an earlier one."""

SALT: Final = "mounts-salt"
"""Key of the copy (`naming.key_copy`): the keys of auth/slurm and auth/jwt with which digests are keyed, in JSON."""

KEYS_READ: Final = "mounts-keys"
"""Key of the copy: identifies the keys that a slurmdbd must have read; blank for those of the salt."""

SECRET_FOLDER: Final = "/etc/slurmdbd-conf"  # noqa: S105
"""Where slurmdbd's pod mounts the Secret with slurmdbd.conf."""

DATABASE: Final = "slurm_acct_db"
ACCOUNT: Final = "slurm"
"""Database and account in the MariaDB that the operator runs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why slurmdbd cannot be started, or stays as it is."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What the generated Secrets must hold: by Secret, then by key."""

    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    problem: Problem | None = None
    """Why that of slurmdbd.conf is not known."""

    needs_password: bool = False
    """Whether a password must be made, or put back, first."""


def names(cluster: Cluster) -> tuple[str, ...]:
    """Secrets to be read for accounting; at a deletion those that have to be deleted too."""
    own = (
        naming.database_password(cluster.name),
        naming.database(cluster.name),
        naming.accounting(cluster.name),
    )
    accounting = variants.wanted(cluster)
    database = accounting.database if accounting is not None else None
    if database is not None and database.password_ref is not None:
        return (*own, database.password_ref.name)
    return own if accounting is not None or (cluster.deleting and not cluster.spec.external) else ()


def value_in(snapshot: Snapshot, secret: str, key: str) -> bytes:
    """A value in a Secret; empty without one."""
    found = snapshot.sources.get(secret)
    return found.data.get(key, b"") if found is not None and found.exists else b""


def contents(snapshot: Snapshot) -> Contents:
    """What the generated Secrets of a Cluster must hold now."""
    cluster = snapshot.cluster
    accounting = variants.wanted(cluster)
    if accounting is None or not variants.runs_slurmdbd(cluster):
        return Contents()
    wrong = slurmdbd_conf.extra_problem(accounting.extra_conf)
    problem = Problem(Reason.CONFIG_REFUSED, f"spec.accounting.extraConf: {wrong}") if wrong is not None else None
    secrets: dict[str, Mapping[str, bytes]] = {}
    if accounting.database is None:
        storage, found = _own_storage(snapshot)
        if storage is None:
            return Contents(problem=found or problem, needs_password=found is None)
        secrets[naming.database(cluster.name)] = {
            INIT_SQL: _statements(storage).encode(),
            PASSWORD: storage.password.encode(),
        }
    else:
        storage, found = _storage_elsewhere(snapshot)
    problem = problem or found
    if problem is None and storage is not None:
        keys = token_keys(snapshot)
        path = f"{SECRET_FOLDER}/{key_set.FILE}" if keys else ""
        text = slurmdbd_conf.render(f"{naming.accounting(cluster.name)}-0", storage, accounting.extra_conf, path)
        version = _keyed(snapshot, f"{text}{keys}".encode()).encode()
        more = {key_set.FILE: keys.encode()} if keys else {}
        secrets[naming.accounting(cluster.name)] = {SLURMDBD_CONF: text.encode(), VERSION: version, **more}
    return Contents(secrets, problem)


def holds(snapshot: Snapshot, secret: str, wanted: Contents) -> bool:
    """Whether a generated Secret holds what it must, and is this Cluster's."""
    found = snapshot.sources.get(secret)
    data = wanted.secrets.get(secret)
    if data is None or found is None or not found.exists or found.cluster_uid != snapshot.cluster.uid:
        return False
    return dict(found.data) == dict(data)


def salt(slurm: bytes, jwt: bytes) -> bytes:
    """The value for `SALT`."""
    return json.dumps([base64.b64encode(one).decode() for one in (slurm, jwt)]).encode()


def salted_keys(value: bytes) -> tuple[bytes, bytes]:
    """The keys of auth/slurm and auth/jwt in a value for `SALT`."""
    slurm, jwt = (base64.b64decode(one) for one in json.loads(value))
    return slurm, jwt


def salted_with(snapshot: Snapshot) -> bytes:
    """The value of `SALT`; empty before the first one, and if somebody has put something else there."""
    found = _noted(snapshot, SALT)
    try:
        salted_keys(found)
    except (ValueError, TypeError, RecursionError):
        return b""
    return found


def slurmdbd_digest(snapshot: Snapshot) -> str:
    """Identify what slurmdbd's pod reads at its start: its Secret, and the keys."""
    keys = _noted(snapshot, KEYS_READ).decode("ascii", errors="replace").strip()
    found = digest(snapshot, naming.accounting(snapshot.cluster.name))
    return f"{found}-{keys}" if keys else found


def digest(snapshot: Snapshot, secret: str) -> str:
    """Identify what a Secret holds without disclosing it, not even to guesses."""
    found = snapshot.sources.get(secret)
    data = found.data if found is not None and found.exists else {}
    return _keyed(snapshot, b"\0".join(part for key in sorted(data) for part in (key.encode(), data[key])))


def token_keys(snapshot: Snapshot) -> str:
    """The public keys of tokens for slurmdbd: those with which slurmctld was last seen to run; empty for none."""
    live = snapshot.children.get(("ConfigMap", naming.good_config(snapshot.cluster.name))) or {}
    return str((live.get("data") or {}).get(key_set.FILE, ""))


def version_in(snapshot: Snapshot) -> str:
    """The version of the stored slurmdbd.conf; empty without one."""
    return value_in(snapshot, naming.accounting(snapshot.cluster.name), VERSION).decode("ascii", errors="replace")


def _keyed(snapshot: Snapshot, data: bytes) -> str:
    keys = (naming.slurm_key(snapshot.cluster), naming.jwt_key(snapshot.cluster))
    slurm, jwt = (b"" if one is None else value_in(snapshot, one.secret, one.key) for one in keys)
    salted = salted_with(snapshot)
    if salted:
        slurm, jwt = salted_keys(salted)
    return hmac.new(slurm, b"\0".join((jwt, data)), hashlib.sha256).hexdigest()[:16]


def _noted(snapshot: Snapshot, key: str) -> bytes:
    """What the copy says, or what is to be written into it."""
    copy = snapshot.sources.get(naming.key_copy(snapshot.cluster.name))
    held = copy.data.get(key, b"") if copy is not None and copy.exists and copy.cluster_uid else b""
    return held or snapshot.memory.keys.known.get(key, b"")


def _own_storage(snapshot: Snapshot) -> tuple[Storage | None, Problem | None]:
    """The operator's MariaDB; nothing while there is no password."""
    cluster = snapshot.cluster
    secret = naming.database_password(cluster.name)
    value = value_in(snapshot, secret, PASSWORD)
    if not value.strip():
        found = snapshot.sources.get(secret)
        if found is not None and found.exists:
            words = f"password of MariaDB: Secret {secret} has no key {PASSWORD}: delete it, and it is recreated"
            return None, Problem(Reason.SECRET_KEY_NOT_FOUND, words)
        return None, None
    password = slurmdbd_conf.password_in(value)
    if password is None:
        words = f"password of MariaDB: key {PASSWORD} of Secret {secret} must be {PASSWORD_RULE}"
        return None, Problem(Reason.SECRET_INVALID, words)
    host = naming.database_host(cluster.name, cluster.namespace)
    return Storage(host, naming.MARIADB_PORT, DATABASE, ACCOUNT, password), None


def _storage_elsewhere(snapshot: Snapshot) -> tuple[Storage | None, Problem | None]:
    accounting = variants.wanted(snapshot.cluster)
    database = accounting.database if accounting is not None else None
    assert database is not None  # noqa: S101 - the caller has looked
    password: str | None = ""
    ref = database.password_ref
    if ref is not None:
        key, purpose = ref.key or PASSWORD, "spec.accounting.database.passwordRef"
        found = snapshot.sources.get(ref.name)
        if found is None or not found.exists:
            return None, Problem(Reason.SECRET_NOT_FOUND, f"{purpose}: there is no Secret {ref.name}")
        if key not in found.data:
            return None, Problem(Reason.SECRET_KEY_NOT_FOUND, f"{purpose}: Secret {ref.name} has no key {key}")
        password = slurmdbd_conf.password_in(found.data[key])
        if password is None:
            words = f"{purpose}: key {key} of Secret {ref.name} must be {PASSWORD_RULE}"
            return None, Problem(Reason.SECRET_INVALID, words)
    return Storage(database.host, database.port, database.name, database.username, password or ""), None


def _statements(storage: Storage) -> str:
    """Statements for each start of MariaDB, one a line (`--init-file`); they may be repeated."""
    account = f"'{storage.user}'@'%'"
    return "".join(
        f"{line};\n"
        for line in (
            f"CREATE DATABASE IF NOT EXISTS `{storage.name}`",
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{storage.password}'",
            f"ALTER USER {account} IDENTIFIED BY '{storage.password}'",
            f"GRANT ALL ON `{storage.name}`.* TO {account}",
        )
    )

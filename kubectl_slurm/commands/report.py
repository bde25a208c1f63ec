"""``kubectl slurm report``: what somebody who helps needs to see, in one archive and without secrets."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import click

from kubectl_slurm.access.kinds import CONFIG_MAPS, EVENTS, OURS, PODS, Kind
from kubectl_slurm.commands.logs.command import of_daemon
from kubectl_slurm.commands.shared.options import Options, shared
from kubectl_slurm.commands.shared.session import Session, open_session
from kubectl_slurm.commands.status import overview
from kubectl_slurm.errors import PluginError, Refused
from kubectl_slurm.facts.objects import ClusterFacts
from kubectl_slurm.rules import conf, redaction, status
from kubectl_slurm.screen.blocks import Line, Mood, Section
from kubectl_slurm.screen.printing import Printer, plain
from kubectl_slurm.version import __version__
from slinky_api.containers import components

KINDS = (*OURS, PODS, EVENTS)
MOST_OBJECTS = 2000
LINES = 2000

Make = Callable[[], str]


@click.command()
@click.option("--to", "path", default="slurm-report.tar.gz", show_default=True, metavar="FILE", help="The archive.")
@shared
def report(options: Options, *, path: str) -> None:
    """Collect an archive for those who help, without secrets.

    It has objects, configuration, logs and status.

    Nothing of Secrets is in it, and of SlurmJobs neither scripts nor arguments. Values of variables, and what looks
    like a token, a key or a password in a text, are replaced. Look through the archive before you send it: names of
    users, jobs and hosts are in it.

    \b
    kubectl slurm report --namespace slurm --to report.tar.gz
    """  # noqa: D301 - as in `status`
    with _new(path) as file, open_session(options) as session:
        missing: list[str] = []
        names = []
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, make in _files(session):
                try:
                    data = make().encode()
                except PluginError as error:
                    missing.append(f"{name}: {error}")
                    continue
                names.append(name)
                _add(archive, name, data)
            _add(
                archive,
                "missing.txt",
                redaction.text("\n".join([f"kubectl-slurm {__version__}", *missing, ""])).encode(),
            )
        size = file.tell()
        if options.is_json:
            options.printer.json({"file": path, "contents": names, "missing": missing})
            return
        lines = [Line(f"Not in it: {text}", Mood.WARNING) for text in missing[:20]]
        options.printer.show((Section(f"{path}: {len(names)} files, {size >> 10} KiB", tuple(lines)),))


@contextmanager
def _new(path: str) -> Iterator[IO[bytes]]:
    """A new file that only its user may read; it is removed if what is to be in it cannot be collected."""
    try:
        file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")  # noqa: PTH123, SIM115 - with its mode
    except FileExistsError:
        raise Refused(f"{path} exists: name another file with --to") from None
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from error
    with file:
        try:
            yield file
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise


def _files(session: Session) -> Iterator[tuple[str, Make]]:
    for kind in KINDS:
        yield f"objects/{kind.plural}.json", partial(_objects, session, kind)
    for cluster in session.clusters():
        seen = cache(partial(overview, session, cluster))
        yield f"{cluster.name}/status.txt", partial(_status, seen)
        yield f"{cluster.name}/status.json", partial(_seen, seen)
        if cluster.external:
            continue
        for suffix in (conf.LIVE, conf.RENDERED):
            name = f"{cluster.name}{suffix}"
            yield f"{cluster.name}/{name}.json", partial(_config, session, name)
        for container in components():
            yield f"{cluster.name}/{container}.log", _log_of(session, cluster, container)


def _log_of(session: Session, cluster: ClusterFacts, container: str) -> Make:
    return lambda: redaction.text("\n".join(of_daemon(session.kube, cluster.name, container, LINES)) + "\n")


def _objects(session: Session, kind: Kind) -> str:
    # In a list, objects do not say their kind.
    return _json([{**obj, "kind": kind.name} for obj in session.kube.objects(kind, most=MOST_OBJECTS)])


def _config(session: Session, name: str) -> str:
    return _json(session.kube.get(CONFIG_MAPS, name))


def _seen(seen: Callable[[], status.Overview]) -> str:
    return _json(plain(seen()))


def _json(value: Any) -> str:
    return json.dumps(redaction.thing(value), indent=1) + "\n"


def _status(seen: Callable[[], status.Overview]) -> str:
    stream = io.StringIO()
    Printer(stream, colours=False).show(status.screen(seen()))
    return redaction.text(stream.getvalue())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(f"slurm-report/{name}")
    entry.size, entry.mode = len(data), 0o600
    archive.addfile(entry, io.BytesIO(data))

"""Builds image sets that are not in the cache yet. `ensure` is what others call.

What is based on the same Debian suite is built one after the other, in one storage of layers under one lock; suites are
built side by side.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hack.images.cache import Cache, cache_root, fingerprint
from hack.images.names import SETS, SLURMD_OCI, SYNC, ImageSet, image_set, slurm_set
from hack.images.recipes import busybox, identity, mariadb, operator, slurm, slurmd_oci
from hack.images.recipes.recipe import Built, Recipe
from hack.images.tools import debian
from hack.images.tools.buildah import Buildah, opened
from hack.images.tools.run import Runner
from hack.machine.progress import step

Progress = Callable[[str], None]

_HERE = Path(__file__).resolve().parent
REPOSITORY = _HERE.parents[1]
#: The version of how things are packed; raise it to build everything again.
_PACKING = "1"


def _recipe(one: ImageSet) -> Recipe:
    if one.name.startswith(SLURMD_OCI):
        return slurmd_oci.SlurmdOciRecipe(REPOSITORY, one)
    if one.slurm is not None:
        return slurm.SlurmRecipe(REPOSITORY, one)
    if one.name == "busybox":
        return busybox.BusyboxRecipe(REPOSITORY, one)
    if one.name == "mariadb":
        return mariadb.MariadbRecipe(REPOSITORY, one)
    if one.name == "identity":
        return identity.IdentityRecipe(REPOSITORY, one)
    made = operator.sync_recipe if one.name == SYNC.name else operator.OperatorRecipe
    return made(REPOSITORY, one)


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def base_key(cache: Cache, suite: str, today: datetime.date) -> str:
    """Key of the Debian base of a suite: the suite, its month or last refresh, and what we do to it."""
    return fingerprint([suite, cache.epoch(today), debian.DPKG_SETTINGS])


def set_key(cache: Cache, one: ImageSet, today: datetime.date) -> str:
    """Key of an image set: everything that goes into it."""
    base = base_key(cache, one.suite, today) if one.suite is not None else ""
    return fingerprint([_PACKING, one.name, one.suite or "", base, _recipe(one).inputs()])


def folder(one: ImageSet, progress: Progress) -> Path:
    """Folder of a set in the cache, after building it if need be."""
    ensure([one.name], progress)
    cache = Cache(cache_root())
    return cache.entry(one.name, set_key(cache, one, _today()))


def ensure(names: Sequence[str], progress: Progress) -> dict[str, list[Path]]:
    """Give the archives of image sets, building those that are not in the cache.

    Safe to call from several processes at once; they wait for each other. If all is there it takes milliseconds, needs
    neither root nor network, and prints nothing.

    Parameters
    ----------
    names
        Sets: ``busybox``, ``slurm-24.11``, ``slurm-26.05``, ``slurmd-oci-24.11``, ``slurmd-oci-26.05``,
        ``mariadb``, ``identity``, ``operator``.
    progress
        Takes lines for people, from several threads.

    Returns
    -------
    dict of str to list of Path
        For each name its archives (today one each, holding all images of the set), ready for
        ``ctr -n k8s.io images import`` and ``docker load``.

    Raises
    ------
    ImagesError
        One of its kinds.
    """
    cache, today = Cache(cache_root()), _today()
    wanted = {name: image_set(name) for name in names}
    keys = {name: set_key(cache, one, today) for name, one in wanted.items()}
    missing = [one for name, one in wanted.items() if not cache.entry(name, keys[name]).exists()]
    groups: dict[str, list[ImageSet]] = {}
    for one in missing:
        groups.setdefault(one.suite or one.name, []).append(one)
    with ThreadPoolExecutor(max_workers=max(1, len(groups))) as pool:
        jobs = [
            pool.submit(_build_group, cache, storage, group, keys, today, progress) for storage, group in groups.items()
        ]
    for job in jobs:
        job.result()
    return {name: [cache.entry(name, key) / f"{name}.tar"] for name, key in keys.items()}


def _build_group(
    cache: Cache,
    storage: str,
    group: Sequence[ImageSet],
    keys: dict[str, str],
    today: datetime.date,
    progress: Progress,
) -> None:
    debian.require_root(", ".join(one.name for one in group))
    cache.require_space()
    with cache.lock("host-tools", progress):
        debian.require_tools(Runner(cache.log("host-tools"), progress))
    with cache.lock(storage, progress):
        for one in group:
            # Another process may have built it while this one waited.
            if not cache.entry(one.name, keys[one.name]).exists():
                _build(cache, storage, one, keys[one.name], today, progress)


def _build(cache: Cache, storage: str, one: ImageSet, key: str, today: datetime.date, progress: Progress) -> None:
    start = time.monotonic()
    log = cache.log(one.name)
    log.unlink(missing_ok=True)
    runner = Runner(log, progress)
    place = cache.storage(storage)
    base = base_key(cache, one.suite, today) if one.suite is not None else ""
    marker = place / "base"
    fresh = not marker.exists() or marker.read_text() != base
    with opened(place, runner, fresh=fresh) as buildah, cache.publishing(one.name, key) as target:
        if one.suite is not None:
            _require_base(buildah, one.suite, runner)
        marker.write_text(base)
        built = _recipe(one).build(buildah, target)
        size = (target / f"{one.name}.tar").stat().st_size
        _write_meta(target, one, key, built)
    progress(f"  ok   images of {one.name}: {size / 1e6:.0f} MB, {time.monotonic() - start:.1f} s in all")
    for notice in built.notices:
        progress(notice)


def _require_base(buildah: Buildah, suite: str, runner: Runner) -> None:
    image = f"docker.io/library/debian:{suite}-slim"
    if buildah.has(image):
        return
    with step(f"Debian {suite} base", runner.progress), debian.base_tree(suite, buildah.folder, runner) as tree:
        buildah.import_tree(tree, image)


def _write_meta(target: Path, one: ImageSet, key: str, built: Built) -> None:
    meta = {"set": one.name, "key": key, "images": built.images, "slurm": built.slurm, "notices": built.notices}
    (target / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")


def slurm_version(slurm: str, progress: Progress) -> str:
    """Full version of the Slurm in the images of a series, read from the images: ``26.05.5`` for ``26.05``.

    Raises
    ------
    UnknownImageSet
        A series that is not built here.
    ImagesError
        The images had to be built and could not.
    """
    meta = json.loads((folder(slurm_set(slurm), progress) / "meta.json").read_text())
    return str(meta["slurm"])


def listing() -> list[tuple[ImageSet, Path, bool]]:
    """All sets, where each is or will be, and whether it is there."""
    cache, today = Cache(cache_root()), _today()
    entries = [(one, cache.entry(one.name, set_key(cache, one, today))) for one in SETS.values()]
    return [(one, entry, entry.exists()) for one, entry in entries]

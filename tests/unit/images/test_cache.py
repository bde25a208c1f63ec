"""Keys, publishing and locks of the image cache."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hack.images.cache import KEEP, Cache, cache_root, fingerprint, fingerprint_files, mounts_below
from hack.images.errors import NoDiskSpace


def test_the_cache_follows_the_xdg_rule() -> None:
    assert cache_root({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/slurm-operator/images")
    assert cache_root({"XDG_CACHE_HOME": "", "HOME": "/h"}) == Path("/h/.cache/slurm-operator/images")


def test_a_fingerprint_knows_where_parts_end() -> None:
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"])
    assert fingerprint(["a", "b"]) != fingerprint(["b", "a"])
    assert fingerprint(["a", b"b"]) == fingerprint(["a", "b"])


def test_a_fingerprint_of_files_sees_content_name_and_mode(tmp_path: Path) -> None:
    folder = tmp_path / "context"
    folder.mkdir()
    file = folder / "a"
    file.write_text("x")
    seen = {fingerprint_files(tmp_path, [folder])}
    file.write_text("y")
    seen.add(fingerprint_files(tmp_path, [folder]))
    file.chmod(0o755)
    seen.add(fingerprint_files(tmp_path, [folder]))
    file.rename(folder / "b")
    seen.add(fingerprint_files(tmp_path, [folder]))
    (folder / "b").unlink()
    seen.add(fingerprint_files(tmp_path, [folder]))
    assert len(seen) == 5


def test_compiled_python_does_not_count(tmp_path: Path) -> None:
    before = fingerprint_files(tmp_path, [tmp_path])
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("x")
    assert fingerprint_files(tmp_path, [tmp_path]) == before


def test_a_file_that_appears_changes_the_fingerprint(tmp_path: Path) -> None:
    before = fingerprint_files(tmp_path, [tmp_path / "README.md"])
    (tmp_path / "README.md").touch()
    assert fingerprint_files(tmp_path, [tmp_path / "README.md"]) != before


def test_the_epoch_is_the_month_until_somebody_refreshes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert cache.epoch(datetime.date(2026, 5, 1)) == "2026-05"
    cache.refresh(datetime.datetime(2026, 5, 3, 10, 0, tzinfo=datetime.UTC))
    assert cache.epoch(datetime.date(2026, 5, 31)) == "2026-05-03T10:00:00"
    assert cache.epoch(datetime.date(2026, 6, 1)) == "2026-06"


def test_an_entry_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail() -> None:
        with cache.publishing("a", "k") as folder:
            (folder / "half").touch()
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert list((tmp_path / "a").iterdir()) == []
    with cache.publishing("a", "k") as folder:
        (folder / "whole").touch()
        assert not cache.entry("a", "k").exists()
    assert (cache.entry("a", "k") / "whole").exists()


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    leftover = tmp_path / "a" / ".tmp-old"
    (leftover / "rootfs").mkdir(parents=True)
    with cache.publishing("a", "k"):
        assert not leftover.exists()


def test_old_entries_go(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for index in range(KEEP + 2):
        with cache.publishing("a", f"k{index}") as folder:
            (folder / "content").touch()
    assert len(list((tmp_path / "a").iterdir())) == KEEP
    assert cache.entry("a", f"k{KEEP + 1}").exists()


def test_a_second_process_waits_for_the_lock_and_says_so(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    program = (
        "import sys, pathlib; from hack.images.cache import Cache\n"
        "with Cache(pathlib.Path(sys.argv[1])).lock('s', print):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        lines: list[str] = []
        waiting = threading.Event()

        def note(line: str) -> None:
            lines.append(line)
            waiting.set()

        def take() -> None:
            with cache.lock("s", note):
                lines.append("taken")

        thread = threading.Thread(target=take)
        thread.start()
        assert waiting.wait(120)
        assert "taken" not in lines
        # The holder dies without releasing anything.
        holder.kill()
        thread.join(120)
        assert lines[-1] == "taken"
        assert "waiting" in lines[0]


def test_a_full_disk_is_said_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1_000_000_000

    monkeypatch.setattr("hack.images.cache.shutil.disk_usage", lambda _path: Usage)
    with pytest.raises(NoDiskSpace, match=r"1\.0 GB free, a build needs 3\.0 GB"):
        Cache(tmp_path).require_space()


def test_mounts_below_a_folder_are_found_deepest_first() -> None:
    mountinfo = (
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        "2 1 0:5 / /c/base/proc rw - proc proc rw\n"
        "3 2 0:6 / /c/base/proc/sys/with\\040blank rw - x x rw\n"
        "4 1 0:7 / /c/base2 rw - x x rw\n"
    )
    assert mounts_below(Path("/c/base"), mountinfo) == [
        Path("/c/base/proc/sys/with blank"),
        Path("/c/base/proc"),
    ]

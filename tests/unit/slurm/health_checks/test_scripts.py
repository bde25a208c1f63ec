"""The checks that come with the operator, in a real shell with fake tools in the path."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.health_checks.nodes import run_script

SMI = """\
#!/bin/sh
case $1 in
--query-gpu=*) printf '%s\\n' {gpus} ;;
--query-remapped-rows=*) printf '%s\\n' {rows} ;;
nvlink) printf 'GPU 0: H100\\n\\t Link 0: 26.562 GB/s\\n\\t Link 1: {link}\\n' ;;
esac
exit {code}
"""
GOOD = "'0, 0, Not Active, Not Active' '1, [N/A], Not Active, Not Active'"
ROWS = "'00000000:01:00.0, 0, 0' '00000000:02:00.0, [N/A], [N/A]'"


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("fake", "parameters", "wanted"),
    [
        ({}, {}, (0, "")),
        ({}, {"COUNT": "2", "CLOCKS": "true"}, (0, "")),
        ({}, {"COUNT": "8"}, (1, "2 GPUs, and 8 expected")),
        ({"gpus": "'0, 3, Not Active, Not Active'"}, {}, (1, "GPU 0: 3 uncorrected ECC errors")),
        ({"gpus": "'0, 3, Not Active, Not Active'"}, {"MAX_ECC_ERRORS": "3"}, (0, "")),
        ({"gpus": "'0, 0, Active, Not Active'"}, {}, (0, "")),
        (
            {"gpus": "'0, 0, Active, Not Active'"},
            {"CLOCKS": "true"},
            (1, "GPU 0: clocks are slowed down by the hardware"),
        ),
        (
            {"gpus": "'0, 0, Not Active, Active'"},
            {"CLOCKS": "true"},
            (1, "GPU 0: clocks are slowed down by the hardware"),
        ),
        (
            {"rows": "'00000000:01:00.0, 0, 1'"},
            {},
            (1, "GPU 00000000:01:00.0: a memory row could not be remapped"),
        ),
        (
            {"rows": "'00000000:01:00.0, 2, 0'"},
            {},
            (1, "GPU 00000000:01:00.0: remapped memory rows wait for a reset"),
        ),
        ({"link": "<inactive>"}, {}, (0, "")),
        ({"link": "<inactive>"}, {"NVLINK": "true"}, (1, "1 NVLinks are down")),
        ({}, {"NVLINK": "true"}, (0, "")),
        ({"gpus": "'GPU is lost'", "code": "15"}, {}, (1, "nvidia-smi: GPU is lost")),
        ({"code": "14"}, {}, (0, "")),
    ],
)
def test_gpus(tmp_path: Path, fake: dict[str, str], parameters: dict[str, str], wanted: tuple[int, str]) -> None:
    tool(tmp_path, "nvidia-smi", SMI.format(**{"gpus": GOOD, "rows": ROWS, "link": "26.562 GB/s", "code": "0"} | fake))

    assert run_script("gpu", tmp_path, None, **parameters) == wanted


def test_a_driver_that_hangs_is_a_bad_gpu(tmp_path: Path) -> None:
    tool(tmp_path, "nvidia-smi", "#!/bin/sh\nexec sleep 60\n")

    assert run_script("gpu", tmp_path, {"-k 1 15": "-k 1 1"}) == (1, "nvidia-smi does not answer")


@pytest.mark.parametrize("name", ["gpu", "gpu-diagnostics", "time"])
def test_without_its_tool_a_check_cannot_be_run(tmp_path: Path, name: str) -> None:
    code, said = run_script(name, tmp_path)

    assert (code, said.endswith("not in this image")) == (127, True)


@pytest.mark.parametrize(
    ("text", "code", "wanted"),
    [
        ("| Denylist | Pass |\n| NVML Library | Pass |", 0, (0, "")),
        ("| Denylist | Pass |\n| Memory      | Fail - GPU: 2 |", 226, (1, "dcgmi: Memory Fail - GPU: 2 ")),
        ("Error: unable to establish a connection", 255, (3, "dcgmi has ended with 255: Error: unable to")),
    ],
)
def test_diagnostics(tmp_path: Path, text: str, code: int, wanted: tuple[int, str]) -> None:
    tool(tmp_path, "dcgmi", f"#!/bin/sh\n[ \"$*\" = 'diag -r 1' ] || exit 9\necho '{text}'\nexit {code}\n")

    found, said = run_script("gpu-diagnostics", tmp_path)

    assert (found, said[: len(wanted[1])]) == wanted


def port(root: Path, device: str, state: str, rate: str = "400 Gb/sec (4X NDR)", layer: str = "InfiniBand") -> None:
    folder = root / device / "ports" / "1"
    folder.mkdir(parents=True)
    (folder / "link_layer").write_text(f"{layer}\n")
    (folder / "state").write_text(f"{state}\n")
    (folder / "rate").write_text(f"{rate}\n")


@pytest.mark.parametrize(
    ("states", "parameters", "wanted"),
    [
        (["4: ACTIVE", "4: ACTIVE"], {}, (0, "")),
        (["4: ACTIVE", "1: DOWN"], {}, (1, "mlx5_1/ports/1: 1: DOWN")),
        (["4: ACTIVE", "1: DOWN"], {"COUNT": "1"}, (0, "")),
        (["4: ACTIVE", "2: INIT"], {"COUNT": "2"}, (1, "1 good ports, and 2 expected; mlx5_1/ports/1: 2: INIT")),
        (["4: ACTIVE"], {"MIN_GBITS": "800"}, (1, "mlx5_0/ports/1: 400 Gb/s, and 800 expected")),
        (["4: ACTIVE"], {"MIN_GBITS": "400"}, (0, "")),
        ([], {}, (3, "no InfiniBand in this container")),
        ([], {"COUNT": "8"}, (1, "0 good ports, and 8 expected")),
    ],
)
def test_infiniband(tmp_path: Path, states: list[str], parameters: dict[str, str], wanted: tuple[int, str]) -> None:
    for number, state in enumerate(states):
        port(tmp_path, f"mlx5_{number}", state)
    port(tmp_path, "roce", "1: DOWN", layer="Ethernet")

    assert run_script("infiniband", tmp_path, {"/sys/class/infiniband": str(tmp_path)}, **parameters) == wanted


def test_mounts(tmp_path: Path) -> None:
    assert run_script("mounts", tmp_path, PATHS="/proc /") == (0, "")
    assert run_script("mounts", tmp_path, PATHS=f"/proc {tmp_path}") == (1, f"nothing is mounted on {tmp_path}")
    tool(tmp_path, "stat", "#!/bin/sh\nexec sleep 60\n")
    assert run_script("mounts", tmp_path, {"-k 1 5": "-k 1 1"}, PATHS="/proc") == (1, "/proc does not answer")


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ({}, (0, "")),
        ({"MIN_FREE_MB": "2001"}, (1, "2000 MB of memory free, and 2001 expected")),
        ({"MIN_TOTAL_MB": "8001"}, (1, "8000 MB of memory, and 8001 expected")),
        ({"MIN_TOTAL_MB": "8000", "MIN_FREE_MB": "2000"}, (0, "")),
    ],
)
def test_memory(tmp_path: Path, parameters: dict[str, str], wanted: tuple[int, str]) -> None:
    shown = tmp_path / "meminfo"
    shown.write_text(f"MemTotal: {8000 * 1024} kB\nMemFree: 5 kB\nMemAvailable: {2000 * 1024} kB\n")

    assert run_script("memory", tmp_path, {"/proc/meminfo": str(shown)}, **parameters) == wanted
    shown.write_text("")
    assert run_script("memory", tmp_path, {"/proc/meminfo": str(shown)}, **parameters)[0] == 3


DF = """\
#!/bin/sh
[ "$1" = -P ] && share={space} || share={inodes}
printf 'Filesystem Blocks Used Available Capacity Mounted\\n/dev/sda1 100 50 50 %s %s\\n' "$share" "$2"
exit {code}
"""


@pytest.mark.parametrize(
    ("fake", "parameters", "wanted"),
    [
        (("95%", "-", 0), {}, (0, "")),
        (("96%", "-", 0), {}, (1, "/: 96 % of space used, and 95 % at most")),
        (("1%", "100%", 0), {"PATHS": "/scratch"}, (1, "/scratch: 100 % of inodes used, and 95 % at most")),
        (("81%", "1%", 0), {"MAX_USED_PERCENT": "80"}, (1, "/: 81 % of space used, and 80 % at most")),
        (("1%", "1%", 1), {}, (3, "/: df: Filesystem Blocks Used Available Capacity Mounted")),
    ],
)
def test_disk(tmp_path: Path, fake: tuple[str, str, int], parameters: dict[str, str], wanted: tuple[int, str]) -> None:
    tool(tmp_path, "df", DF.format(space=fake[0], inodes=fake[1], code=fake[2]))

    assert run_script("disk", tmp_path, None, **parameters) == wanted


def test_disk_with_the_real_tool(tmp_path: Path) -> None:
    assert run_script("disk", tmp_path, PATHS="/", MAX_USED_PERCENT="100") == (0, "")


@pytest.mark.parametrize(
    ("offset", "leap", "parameters", "wanted"),
    [
        ("0.000012345", "Normal", {}, (0, "")),
        ("-0.500999", "Normal", {}, (0, "")),
        ("-0.501", "Normal", {}, (1, "the clock is 501 ms off, and 500 ms at most")),
        ("12.0089", "Normal", {}, (1, "the clock is 12008 ms off, and 500 ms at most")),
        ("0.1", "Normal", {"MAX_OFFSET_MS": "50"}, (1, "the clock is 100 ms off, and 50 ms at most")),
        ("0.0", "Not synchronised", {}, (1, "the clock is not synchronised")),
        ("", "", {}, (3, "chronyc says no offset")),
    ],
)
def test_time(tmp_path: Path, offset: str, leap: str, parameters: dict[str, str], wanted: tuple[int, str]) -> None:
    line = f"A9FEA97B,169.254.169.123,4,1700000000.1,{offset},0.1,0.2,-22.6,0.0,0.0,0.0,0.0,64.2,{leap}"
    tool(tmp_path, "chronyc", f"#!/bin/sh\n[ \"$*\" = '-n -c tracking' ] || exit 9\necho '{line}'\n")

    assert run_script("time", tmp_path, None, **parameters) == wanted


def test_a_chronyd_that_cannot_be_asked_proves_nothing(tmp_path: Path) -> None:
    tool(tmp_path, "chronyc", "#!/bin/sh\necho '506 Cannot talk to daemon'\nexit 1\n")

    assert run_script("time", tmp_path) == (3, "chronyc: 506 Cannot talk to daemon")

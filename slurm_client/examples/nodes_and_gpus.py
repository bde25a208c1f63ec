"""List nodes with their GPUs, in use and in all."""

import os

from slurm_client import SyncSlurmClient
from slurm_client.notation.tres import Tres


def main() -> None:
    """Print one line for each node that has GPUs, and the sum."""
    used = total = 0
    with SyncSlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm:
        for node in slurm.nodes():
            here, busy = Tres.parse(node.tres).gpus, Tres.parse(node.tres_used).gpus
            if here:
                print(f"{node.name:12} {node.state!s:24} {busy}/{here} GPUs  {node.reason}")
            if node.is_usable:
                used, total = used + busy, total + here
    print(f"{total - used} of {total} GPUs on usable nodes are free")


if __name__ == "__main__":
    main()

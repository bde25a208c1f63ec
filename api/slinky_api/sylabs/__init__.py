"""Job kinds of ``slurm.sylabs.io`` and ``wlm.sylabs.io``, so that manifests written for sylabs' operators can be read.

===========  =====================================================================================
module       kinds
===========  =====================================================================================
`wlm`        SlurmJob and WlmJob of wlm-operator, with the fields that its fork added
`slurm`      SlurmJob of slurm-operator, its predecessor
`common`     what they share: node selector, transfers of files, status
===========  =====================================================================================

Every field that those operators had is here with its old name, also those that are refused: what becomes of each is
decided in ``slinky_operator.sylabs.translation``. Specs keep unknown fields, so that a misspelt one is refused by name
instead of being pruned.
"""

from typing import Final

from slinky_api.sylabs import slurm, wlm
from slinky_api.v1alpha1 import Kinds

__all__ = ["OLD_JOB_KINDS"]

OLD_JOB_KINDS: Final[Kinds] = (
    (wlm.SLURMJOB, wlm.SlurmJob),
    (wlm.WLMJOB, wlm.WlmJob),
    (slurm.SLURMJOB, slurm.SlurmJob),
)
"""What their fields mean to Slurm is in docs/old-job-kinds.md."""

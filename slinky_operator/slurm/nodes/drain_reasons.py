"""Words in the reason of a drain by which controllers tell the operator's drains from those of others."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "slurm-operator: "
"""Of every reason that the operator writes on a node."""

PARTING: Final = "preStop"
"""What the hook in templates of Slinky 0.1 to 0.3 writes as reason while its pod ends. It takes the place of whatever
reason was there: the drain beneath is nobody's any more."""

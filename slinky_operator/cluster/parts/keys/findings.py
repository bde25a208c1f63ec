"""What a pass has found out about keys, for the parts after them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.memory.keys import SeenSecret
from slinky_operator.cluster.parts.keys.proof.key_steps import Standing
from slinky_operator.cluster.parts.keys.signing import Signing
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.slurm import naming
from slinky_operator.slurm.tokens.signing_keys import SigningKey


@dataclass(frozen=True, slots=True)
class SlurmKeySecrets:
    """The Secret with the user's key of auth/slurm, and the staged one, which pods mount once that is accepted."""

    seen: SeenSecret | None = None
    """The version of the user's."""

    direct: bool = True
    """Whether a daemon may read the Secret that is judged, instead of the accepted key only (`staged_keys`)."""

    staging: Missing | None = None
    """Why the staged Secret does not hold the accepted key."""

    staged: SeenSecret | None = None
    """The version of the staged Secret."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What is known of a Cluster's keys, and what to do."""

    known: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The keys of the daemons, by their names in the copy."""

    actions: tuple[Action, ...] = ()
    slurm: Missing | None = None
    """What is wrong with the key of auth/slurm: nothing may be done then that lets a daemon read it."""

    jwt: Missing | None = None
    """What is wrong with the key of auth/jwt."""

    changed: bytes = field(default=b"", repr=False)
    """Another key of auth/jwt than the one that slurmctld is known to have; empty if there is none."""

    mountable: bool = True
    """Whether both Secrets contain what a new pod of slurmctld has to mount, and the copy has been written."""

    signing: Signing = Signing()  # noqa: RUF009 - frozen
    """What is known of the private key of tokens."""

    weak: tuple[str, ...] = ()
    """What is wrong with keys that daemons run with: a new Cluster would be refused with them."""

    step: Missing | None = None
    """Which daemons are not known yet to have the key set of auth/slurm, or the key of auth/jwt, accepted last."""

    settling: Missing | None = None
    """Why slurmctld must not reconfigure for a while: kubelets may have mounted what a Secret held before."""

    standing: Standing | None = None
    """How far the daemons are with their key set; `None` without one."""

    secrets: SlurmKeySecrets = SlurmKeySecrets()

    @property
    def held_by_slurm(self) -> Missing | None:
        """Why no daemon may read the key of auth/slurm: it would be one that others lack, or that is refused."""
        is_read = self.secrets.direct or naming.SLURM_KEY not in self.known
        return (self.slurm if is_read else None) or self.secrets.staging

    @property
    def held(self) -> Missing | None:
        """Why slurmctld must not reconfigure: it would read a key that others lack, or that is refused."""
        refused = self.jwt is not None and self.jwt.reason is Reason.SECRET_INVALID
        return self.held_by_slurm or (self.jwt if refused else None) or self.settling

    @property
    def trouble(self) -> Missing | None:
        """The trouble to report about keys that daemons mount."""
        return self.slurm or self.jwt or self.secrets.staging or self.step

    @property
    def troubled(self) -> bool:
        """Whether Secrets are to be read again soon."""
        return self.trouble is not None or self.signing.trouble is not None

    @property
    def candidates(self) -> tuple[SigningKey, ...]:
        """Keys to sign tokens with, the one that slurmctld is known to have first."""
        secrets = (self.known.get(naming.JWT_KEY), self.changed)
        own = () if self.signing.in_use is None else (self.signing.in_use,)
        return (*own, *(SigningKey(one) for one in secrets if one))

"""Where modules of daemons find the rules for users' templates; they are shared with other controllers."""

from slinky_operator.slurm.template_rules import fitted

__all__ = ["fitted"]

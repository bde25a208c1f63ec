"""The configuration as a part: the next step of its rollout, and what is reported on NodeSets."""

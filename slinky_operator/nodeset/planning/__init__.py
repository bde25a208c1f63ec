"""From a snapshot to a plan: the decisions of a pass, its actions in order, its findings, the time of the next one."""

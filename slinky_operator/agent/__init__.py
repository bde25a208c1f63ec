"""Names under which pods start the agent: ``python -m slinky_operator.agent``, and ``slinky_operator.agent.sack``.

The programs are in `slinky_operator.pod_programs.agent`. These names are in the command lines of pods, and slurmctld's
pod is replaced when its command line changes: the names stay where they are, whatever moves behind them.
"""

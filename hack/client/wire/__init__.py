"""
Generation of the wire types of ``slurm_client`` from the specifications that slurmrestd itself prints.

``python -m hack.client.wire`` renders ``slurm_client/wire/v0_0_NN`` from the slimmed specifications in
``specs/``; two runs give the same bytes. ``python -m hack.client.wire specs`` makes those from slurmrestd in
the root trees of both Slurm versions, which is needed only when a version is added or an operation is wrapped.
"""

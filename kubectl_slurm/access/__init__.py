"""How the API server and Slurm are reached, with what an ordinary editor of a namespace may do.

============  ========================================================================================================
`kubectl`     kubectl itself: its settings, and ``kubectl proxy`` on a unix socket that nobody else can open
`kinds`       kinds of objects and where the API server has them
`kubernetes`  requests to the API server, and what its refusals mean
`tokens`      a token for slurmrestd: given, of a Token, of one made for this call, or of scontrol in slurmctld's pod
`disposable`  pods that answer one question, and are deleted
`slurmrestd`  slurmrestd through the API server's proxy of Services, or at a URL
============  ========================================================================================================
"""

"""
Calls to slurmdbd, which keeps accounting, through the same slurmrestd: one module for each kind of object.

All of them are methods of `Database`, which is reached as ``slurm.db``.
"""

"""``kubectl slurm preflight``: what applying a file would do, without doing it.

=========  ==============================================================
`command`  the command: objects of a file, what becomes of nodes and jobs
`trial`    the trial: Slurm's daemons read a changed configuration
=========  ==============================================================
"""

"""Steps about what a site has around Slurm's daemons: accounts and users, metrics, machines outside, output of jobs."""

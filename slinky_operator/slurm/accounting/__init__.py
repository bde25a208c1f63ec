"""slurmdbd.conf, and what slurm.conf says of slurmdbd. Pure.

Which daemons a Cluster runs for it, and with which Secrets, is the Cluster controller's business.
"""

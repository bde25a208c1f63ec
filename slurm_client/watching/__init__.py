"""Watches: what changes in Slurm as events, one concern a module; :mod:`slurm_client.watch` is the door to it."""

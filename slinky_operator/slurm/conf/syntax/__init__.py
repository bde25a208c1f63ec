"""Slurm's syntax: what users write, read as Slurm reads it (`directives`); what was rendered, read again (`parsed`).

No rule about what a key or a line means is here.
"""

"""Slurm's syntax: text to words and lines.

What users write is read as Slurm reads it (`directives`); what was rendered is read again (`parsed`), with the states
of partitions that its comments tell of (`set_states`). No rule about what a key or a line means is here.
"""

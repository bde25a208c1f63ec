"""The part of `executor` that talks to Slurm: queries whose answers the next plan reads, reloads, and accounts."""

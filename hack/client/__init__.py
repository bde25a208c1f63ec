"""What programs write of `slurm_client`.

Wire code from Slurm's own specifications (`wire`), blocking calls and reference pages (`package`).
"""

"""What is asked of Slurm: lists that are watched, answers that are polled, and the snapshot that both make.

=================  ==================================================================
module             concern
=================  ==================================================================
`snapshot`         everything known at one time, frozen
`health`           of each source: age, duration, polls, failures
`polled`           single answers at an interval: diag, shares, ping, slurmdbd
`collector`        the watches and polls of one client, and the snapshot of them
=================  ==================================================================
"""

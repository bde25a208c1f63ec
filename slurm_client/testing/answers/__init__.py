"""What goes in and out of the fake: calls, replies, and how the pretended cluster is written as slurmrestd's JSON."""

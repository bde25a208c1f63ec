"""What is known of a SlurmJob, what is done next, and what is shown: pure, without a clock or a call."""

"""The steps of a plan, by subject: pure functions from what is known so far to actions."""

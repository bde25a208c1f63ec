"""The steps of a plan, by what they are about: pure functions from what is known so far to actions."""

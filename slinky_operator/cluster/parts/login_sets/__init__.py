"""The LoginSets of `spec.login`."""

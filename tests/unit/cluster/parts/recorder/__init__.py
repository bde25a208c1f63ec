"""The recorder: a Deployment of one pod, and how many records it has."""

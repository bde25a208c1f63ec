"""Calls about jobs: reading them, submitting them, changing and ending them, waiting for their end."""

"""Writes the objects of all daemons and what slurmd pods share, and deletes those that are not wanted."""

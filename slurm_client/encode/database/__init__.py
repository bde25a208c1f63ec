"""What slurmdbd is asked to keep."""

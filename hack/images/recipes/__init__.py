"""One recipe per image set: what goes in, and how it is built."""

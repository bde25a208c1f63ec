"""The slurmd pod: what is generated, what a template may set, and how slurmd is started."""

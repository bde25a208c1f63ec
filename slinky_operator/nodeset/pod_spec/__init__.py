"""The slurmd pod: what is generated, what a template may say, and how slurmd is started."""

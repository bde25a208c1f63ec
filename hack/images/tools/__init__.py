"""The tools that recipes work with: debootstrap, buildah, archives, and the runner of programs."""

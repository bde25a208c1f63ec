# All images with Docker:  docker buildx bake -f containers/docker-bake.hcl
# Paths are relative to the root of the repository, where this is meant to be run.

variable "REGISTRY" {
  default = "localhost/slinky"
}

variable "OPERATOR_TAG" {
  default = "dev"
}

group "default" {
  targets = ["operator", "slurm", "slurmd-oci", "mariadb", "sssd"]
}

target "operator" {
  context    = "."
  dockerfile = "containers/operator/Dockerfile"
  tags       = ["${REGISTRY}/slurm-operator:${OPERATOR_TAG}"]
}

# One target per daemon and Slurm version, named like slurmctld-24-11.
target "slurm" {
  name = "${daemon}-${replace(slurm.version, ".", "-")}"
  matrix = {
    daemon = ["slurmctld", "slurmd", "slurmrestd", "slurmdbd", "login"]
    slurm = [
      { version = "24.11", suite = "trixie" },
      { version = "26.05", suite = "sid" },
    ]
  }
  context    = "containers/slurm"
  dockerfile = "Dockerfile"
  target     = daemon
  args       = { DEBIAN_SUITE = slurm.suite }
  tags       = ["${REGISTRY}/${daemon}:${slurm.version}"]
}

# slurmd with an OCI runtime, for `srun --container`: named like slurmd-oci-24-11.
target "slurmd-oci" {
  name = "slurmd-oci-${replace(version, ".", "-")}"
  matrix = {
    version = ["24.11", "26.05"]
  }
  context    = "containers/slurmd-oci"
  dockerfile = "Dockerfile"
  contexts   = { slurmd = "target:slurmd-${replace(version, ".", "-")}" }
  args       = { SLURMD = "slurmd" }
  tags       = ["${REGISTRY}/slurmd-oci:${version}"]
}

# The database of slurmdbd.
target "mariadb" {
  context    = "containers/mariadb"
  dockerfile = "Dockerfile"
  args       = { DEBIAN_SUITE = "trixie" }
  tags       = ["${REGISTRY}/mariadb:11.8"]
}

# What answers for users and groups, beside the daemons.
target "sssd" {
  context    = "containers/sssd"
  dockerfile = "Dockerfile"
  args       = { DEBIAN_SUITE = "trixie" }
  tags       = ["${REGISTRY}/sssd:2.10"]
}

# All images for both releases of Slurm, from the same Dockerfiles as `make images`, run from the root of the repository:
#
#   docker buildx bake -f containers/docker-bake.hcl --load
#   REGISTRY=registry.example.com/slurm PLATFORMS=linux/amd64,linux/arm64 \
#     docker buildx bake -f containers/docker-bake.hcl --push

variable "REGISTRY" {
  default = "localhost/slinky"
}

# The tag of the operator's image.
variable "OPERATOR_TAG" {
  default = "dev"
}

# With commas; several need a builder of the driver docker-container, and emulation. Empty is this machine's.
variable "PLATFORMS" {
  default = ""
}

# What images say of where they come from: the repository, the commit, and when it was made (RFC 3339).
variable "SOURCE" {
  default = ""
}

variable "REVISION" {
  default = ""
}

variable "CREATED" {
  default = ""
}

group "default" {
  targets = ["operator", "slurm", "slurmd-oci", "mariadb", "sssd"]
}

# What all images have in common. Labels are put on last, so layers are the same without them.
target "common" {
  platforms = compact(split(",", PLATFORMS))
  labels = {
    "org.opencontainers.image.source"   = SOURCE
    "org.opencontainers.image.revision" = REVISION
    "org.opencontainers.image.created"  = CREATED
  }
}

target "operator" {
  inherits   = ["common"]
  context    = "."
  dockerfile = "containers/operator/Dockerfile"
  labels     = { "org.opencontainers.image.version" = OPERATOR_TAG }
  tags       = ["${REGISTRY}/slurm-operator:${OPERATOR_TAG}"]
}

# One target per daemon and Slurm version, named like slurmctld-24-11.
target "slurm" {
  inherits = ["common"]
  name     = "${daemon}-${replace(slurm.version, ".", "-")}"
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
  labels     = { "org.opencontainers.image.version" = slurm.version }
  tags       = ["${REGISTRY}/${daemon}:${slurm.version}"]
}

# slurmd with an OCI runtime, for `srun --container`: named like slurmd-oci-24-11.
target "slurmd-oci" {
  inherits = ["common"]
  name     = "slurmd-oci-${replace(version, ".", "-")}"
  matrix = {
    version = ["24.11", "26.05"]
  }
  context    = "containers/slurmd-oci"
  dockerfile = "Dockerfile"
  contexts   = { slurmd = "target:slurmd-${replace(version, ".", "-")}" }
  args       = { SLURMD = "slurmd" }
  labels     = { "org.opencontainers.image.version" = version }
  tags       = ["${REGISTRY}/slurmd-oci:${version}"]
}

# The database of slurmdbd.
target "mariadb" {
  inherits   = ["common"]
  context    = "containers/mariadb"
  dockerfile = "Dockerfile"
  args       = { DEBIAN_SUITE = "trixie" }
  labels     = { "org.opencontainers.image.version" = "11.8" }
  tags       = ["${REGISTRY}/mariadb:11.8"]
}

# What answers for users and groups, beside the daemons.
target "sssd" {
  inherits   = ["common"]
  context    = "containers/sssd"
  dockerfile = "Dockerfile"
  args       = { DEBIAN_SUITE = "trixie" }
  labels     = { "org.opencontainers.image.version" = "2.10" }
  tags       = ["${REGISTRY}/sssd:2.10"]
}

# slurmd and login images with pyxis and enroot, from their sources; not among the default targets. Named like
# slurmd-pyxis-26-05.
target "pyxis" {
  inherits = ["common"]
  name     = "${image}-pyxis-${replace(version, ".", "-")}"
  matrix = {
    image   = ["slurmd", "login"]
    version = ["24.11", "26.05"]
  }
  context    = "containers/pyxis"
  dockerfile = "Dockerfile"
  contexts = {
    slurm  = "target:${image}-${replace(version, ".", "-")}"
    pyxis  = "https://github.com/NVIDIA/pyxis.git#v0.24.0"
    enroot = "https://github.com/NVIDIA/enroot.git#v4.1.2"
  }
  args   = { SLURM = "slurm" }
  labels = { "org.opencontainers.image.version" = version }
  tags   = ["${REGISTRY}/${image}-pyxis:${version}"]
}

#!/usr/bin/env bash
# A Kubernetes in Docker (kind) with what the operator and Slurm need: Nodes, a default StorageClass (kind brings
# local-path), and the images, built with Docker and loaded. For machines with Docker; without it: `make up`.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=slurm
nodes=2
slurm=26.05
image=""
action=up
dry=""

usage() {
  cat <<'TEXT'
Usage: hack/developing/kind.sh [--name NAME] [--nodes N] [--slurm 24.11|26.05] [--image KINDEST/NODE] [--dry-run] [ACTION]

  up       create the cluster, build and load all images, install the operator (default);
           kubectl's current context becomes the cluster's
  load     build and load the images again
  config   print kind's configuration
  down     delete the cluster

  --name     name of the cluster (default: slurm; the context of kubectl is kind-NAME)
  --nodes    Nodes for Slurm, besides the control plane (default: 2)
  --slurm    release of Slurm in the images (default: 26.05)
  --image    image of Kubernetes' Nodes (default: kind's own)
  --dry-run  print the commands
TEXT
}

fail() {
  echo "kind.sh: $*" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  case "$1" in
    --name | --nodes | --slurm | --image)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case "$1" in
        --name) name=$2 ;;
        --nodes) nodes=$2 ;;
        --slurm) slurm=$2 ;;
        --image) image=$2 ;;
      esac
      shift 2
      ;;
    --dry-run)
      dry=yes
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    up | load | config | down)
      action=$1
      shift
      ;;
    *) fail "unknown: $1 (--help lists what there is)" ;;
  esac
done
[[ $name =~ ^[a-z0-9][a-z0-9.-]*$ ]] || fail "--name: small letters, digits, dots and dashes"
[[ $nodes =~ ^[1-9][0-9]?$ ]] || fail "--nodes: 1 to 99"
case "$slurm" in
  24.11) suite=trixie ;;
  26.05) suite=sid ;;
  *) fail "--slurm: 24.11 or 26.05" ;;
esac

config() {
  cat <<'YAML'
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
  - role: control-plane
YAML
  for ((i = 0; i < nodes; i++)); do
    echo "  - role: worker"
  done
}

run() {
  if [ -n "$dry" ]; then
    echo "$*"
  else
    "$@"
  fi
}

need() {
  [ -z "$dry" ] || return 0
  for program in "$@"; do
    command -v "$program" > /dev/null || fail "$program is missing"
  done
}

build() {
  local daemon
  run docker build --file containers/operator/Dockerfile --tag localhost/slinky/slurm-operator:dev .
  for daemon in "${daemons[@]}"; do
    run docker build --file containers/slurm/Dockerfile --build-arg "DEBIAN_SUITE=$suite" --target "$daemon" \
      --tag "localhost/slinky/$daemon:$slurm" containers/slurm
  done
  run docker build --file containers/mariadb/Dockerfile --tag localhost/slinky/mariadb:11.8 containers/mariadb
}

load() {
  local images=(localhost/slinky/slurm-operator:dev localhost/slinky/mariadb:11.8)
  local daemon
  for daemon in "${daemons[@]}"; do
    images+=("localhost/slinky/$daemon:$slurm")
  done
  run kind load docker-image --name "$name" "${images[@]}"
}

daemons=(slurmctld slurmd slurmrestd slurmdbd login)
case "$action" in
  config) config ;;
  down)
    need kind
    run kind delete cluster --name "$name"
    ;;
  load)
    need docker kind
    build
    load
    ;;
  up)
    need docker kind kubectl helm
    before=""
    [ -n "$dry" ] || before="$(kubectl config current-context 2> /dev/null || true)"
    settings="$(mktemp)"
    trap 'rm -f "$settings"' EXIT
    if [ -n "$dry" ] || ! kind get clusters 2> /dev/null | grep -qx "$name"; then
      config > "$settings"
      run kind create cluster --name "$name" ${image:+--image "$image"} --config "$settings" --wait 300s
    fi
    build
    load
    # `make deploy` takes the current context.
    echo "kind.sh: the current context of kubectl is now kind-$name${before:+; before it was $before}" >&2
    run kubectl config use-context "kind-$name"
    run make deploy "SLURM=$slurm"
    ;;
esac

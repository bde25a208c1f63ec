{{/*
What the operator may do where it serves Clusters and NodeSets; the same rules in a ClusterRole or in Roles.

Secrets are read by name: there is no list and no watch of them. Creating by server-side apply takes `create` besides
`patch`. `finalizers` belong to owners: the API server demands `update` of them from whoever makes a dependent that
blocks the owner's deletion. A ConfigMap is such an owner: it keeps slurmd pods from being deleted before they are
drained.
*/}}
{{- define "slurm-operator.rules" -}}
- apiGroups: [slinky.slurm.net]
  resources: [clusters, nodesets]
  verbs: [get, list, watch, update, patch]
- apiGroups: [slinky.slurm.net]
  resources: [clusters/status, nodesets/status]
  verbs: [get, update, patch]
- apiGroups: [slinky.slurm.net]
  resources: [clusters/finalizers, nodesets/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods, services, configmaps, persistentvolumeclaims]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, update, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [apps]
  resources: [statefulsets, deployments, controllerrevisions]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, update, patch, delete]
{{- end -}}

{{- define "slurm-operator.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end -}}

{{/*
The operator's rights where it serves Clusters, NodeSets, LoginSets and Tokens; the same rules in a ClusterRole or in Roles.

Secrets are read by name, without list or watch. Only the Lease is updated: all other changes are patches and
server-side apply, which also needs `create` to create an object. `nodesets/finalizers`: the API server requires
`update` on it to create a dependent that blocks the owner's deletion, such as slurmd pods and ControllerRevisions.
tests/integration/helm compares these rules with the API server's audit log.
*/}}
{{- define "slurm-operator.rules" -}}
- apiGroups: [slinky.slurm.net]
  resources: [clusters, nodesets]
  verbs: [get, list, watch, patch]
- apiGroups: [slinky.slurm.net]
  resources: [tokens, loginsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [slinky.slurm.net]
  resources: [clusters/status, nodesets/status, loginsets/status, tokens/status]
  verbs: [patch]
- apiGroups: [slinky.slurm.net]
  resources: [nodesets/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods, services, configmaps, persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [apps]
  resources: [statefulsets, deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# Whether the ServiceAccount of another release, whose Lease says that it serves these namespaces, may work there.
- apiGroups: [authorization.k8s.io]
  resources: [{{ .Values.watchNamespaces | empty | ternary "subjectaccessreviews" "localsubjectaccessreviews" }}]
  verbs: [create]
{{- if .Values.jobs.enabled }}
- apiGroups: [slinky.slurm.net]
  resources: [slurmjobs]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [slinky.slurm.net]
  resources: [slurmjobs/status]
  verbs: [patch]
{{- end }}
{{- if .Values.jobs.sylabs }}
- apiGroups: [slinky.slurm.net]
  resources: [slurmjobs]
  verbs: [create]
- apiGroups: [wlm.sylabs.io]
  resources: [slurmjobs, wlmjobs]
  verbs: [get, list, watch]
- apiGroups: [slurm.sylabs.io]
  resources: [slurmjobs]
  verbs: [get, list, watch]
- apiGroups: [wlm.sylabs.io]
  resources: [slurmjobs/status, wlmjobs/status]
  verbs: [patch]
- apiGroups: [slurm.sylabs.io]
  resources: [slurmjobs/status]
  verbs: [patch]
{{- end }}
{{- if .Values.rbac.serviceMonitors }}
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [get, create, patch]
{{- end }}
{{- end -}}

{{/* Labels of namespaces, by which a Cluster may name the tenants of its jobs, and the Cluster that a namespace names. */}}
{{- define "slurm-operator.namespaceRules" -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end -}}

{{- define "slurm-operator.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- if .Values.nodeLabels.enabled }}
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}
{{- end -}}

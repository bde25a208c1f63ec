{{- define "slurm-virtual-nodes.labels" -}}
app.kubernetes.io/name: slurm-virtual-nodes
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "slurm-virtual-nodes.subjects" -}}
- kind: ServiceAccount
  name: {{ .Values.operator.serviceAccount | quote }}
  namespace: {{ .Values.operator.namespace | quote }}
{{- end -}}

{{/* What the operator does in the namespaces of tenants. */}}
{{- define "slurm-virtual-nodes.tenantRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
- apiGroups: [slinky.slurm.net]
  resources: [slurmjobs]
  verbs: [create, patch, delete]
{{- end -}}

{{/* Whether the API server has ValidatingAdmissionPolicy in v1. */}}
{{- define "slurm-virtual-nodes.hasPolicy" -}}
{{- and .Values.policy.create (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- end -}}

{{/* A CEL expression: whether the name of a Node, an expression too, is that of a virtual Node. */}}
{{- define "slurm-virtual-nodes.isVirtual" -}}
{{- $name := .name -}}
{{- if .hosts -}}
{{- $parts := list -}}
{{- range .hosts }}{{ $parts = append $parts (printf "%s.startsWith('slurm-%s-')" $name .) }}{{ end -}}
({{ join " || " $parts }})
{{- else -}}
{{ $name }}.startsWith('slurm-')
{{- end -}}
{{- end -}}

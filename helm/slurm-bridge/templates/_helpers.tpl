{{- define "slurm-bridge.labels" -}}
app.kubernetes.io/name: slurm-bridge
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "slurm-bridge.subjects" -}}
- kind: ServiceAccount
  name: {{ .Values.operator.serviceAccount | quote }}
  namespace: {{ .Values.operator.namespace | quote }}
{{- end -}}

{{/* What the operator does in the namespaces of tenants. */}}
{{- define "slurm-bridge.tenantRules" -}}
- apiGroups: [""]
  resources: [pods, pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# Whose pods they are: how many there will be, and how they have ended.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [get]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [get]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get]
- apiGroups: [slinky.slurm.net]
  resources: [slurmjobs]
  verbs: [create, patch, delete]
{{- if .Values.devices }}
# The devices that Slurm has given to a job, and the finalizer that claims with devices have.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaims/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* A namespaceSelector without the keys that a value of null has taken away. */}}
{{- define "slurm-bridge.selector" -}}
{{- $labels := dict -}}
{{- range $key, $value := .matchLabels }}{{ if ne $value nil }}{{ $_ := set $labels $key $value }}{{ end }}{{ end -}}
{{- if not (or $labels .matchExpressions) -}}
{{- fail "policy.namespaces: names no label, which would choose every namespace" -}}
{{- end -}}
{{- with $labels }}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .matchExpressions }}
matchExpressions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Whether the API server has ValidatingAdmissionPolicy in v1. */}}
{{- define "slurm-bridge.hasPolicy" -}}
{{- and .Values.policy.create (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- end -}}

{{/* CEL expressions. */}}
{{- define "slurm-bridge.isOperator" -}}
request.userInfo.username == 'system:serviceaccount:{{ .Values.operator.namespace }}:{{ .Values.operator.serviceAccount }}'
{{- end -}}

{{- define "slurm-bridge.gated" -}}
{{ . }}.spec.?schedulingGates.orValue([]).exists(gate, gate.name == 'bridge.slinky.slurm.net/slurm')
{{- end -}}

{{- define "slurm-bridge.labelled" -}}
{{ . }}.metadata.?labels[?'bridge.slinky.slurm.net/pod'].orValue('') == 'true'
{{- end -}}

{{- define "slurm-node-life.labels" -}}
app.kubernetes.io/name: slurm-node-life
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Whether the API server has ValidatingAdmissionPolicy in v1. */}}
{{- define "slurm-node-life.hasPolicy" -}}
{{- and .Values.policy.create (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- end -}}

{{- define "slurm-exporter.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "slurm-exporter.metadata" -}}
name: {{ include "slurm-exporter.fullname" . | quote }}
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "slurm-exporter.selectorLabels" . | nindent 2 }}
  app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

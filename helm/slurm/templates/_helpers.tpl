{{- define "slurm.clusterName" -}}
{{- default .Release.Name .Values.clusterName -}}
{{- end -}}

{{- define "slurm.metadata" -}}
namespace: {{ .Release.Namespace | quote }}
labels:
  app.kubernetes.io/name: slurm
  app.kubernetes.io/instance: {{ .Release.Name | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
  {{- include "slurm.ownLabels" . | nindent 2 }}
{{- with .Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels of the values, without those that the chart writes itself. */}}
{{- define "slurm.ownLabels" -}}
{{- with omit (.Values.labels | default dict) "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Slurm clients: all pods of the Cluster, and external clients. */}}
{{- define "slurm.peers" -}}
- podSelector:
    matchLabels:
      cluster.slinky.slurm.net/name: {{ include "slurm.clusterName" . | quote }}
{{- with .Values.networkPolicy.slurm.clients }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The operator: its pods, or with debug.localOperator any address. */}}
{{- define "slurm.operator" -}}
{{ toYaml .Values.networkPolicy.operator }}
{{- if include "slurm.debug" (dict "root" . "name" "localOperator") }}
- ipBlock:
    cidr: 0.0.0.0/0
- ipBlock:
    cidr: "::/0"
{{- end }}
{{- end -}}

{{/* The pod of `helm test`, by which the policy of slurmrestd knows it. */}}
{{- define "slurm.testLabels" -}}
app.kubernetes.io/name: slurm-helm-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

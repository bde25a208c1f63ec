{{/* Names */}}

{{- define "slurm-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "slurm-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "slurm-operator.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "slurm-operator.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Cluster-scoped objects have the release's namespace in their name; the default install has the plain name. */}}
{{- define "slurm-operator.clusterName" -}}
{{- $fullname := include "slurm-operator.fullname" . -}}
{{- if eq .Release.Namespace $fullname -}}
{{- $fullname -}}
{{- else -}}
{{- printf "%s:%s" .Release.Namespace $fullname -}}
{{- end -}}
{{- end -}}

{{- define "slurm-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "slurm-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: must be given when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels */}}

{{- define "slurm-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "slurm-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "slurm-operator.labels" -}}
{{ include "slurm-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{/* Decisions */}}

{{- define "slurm-operator.watchNodes" -}}
{{- if eq (toString .Values.watchNodes) "auto" -}}
{{- empty .Values.watchNamespaces -}}
{{- else -}}
{{- .Values.watchNodes -}}
{{- end -}}
{{- end -}}

{{- define "slurm-operator.image" -}}
{{- printf "%s:%s" .Values.image.repository .Values.image.tag -}}
{{- end -}}

{{- define "slurm-operator.slurmImage" -}}
{{- $slurm := .root.Values.slurm -}}
{{- $known := .image -}}
{{- default (printf "%s/%s:%s" $slurm.registry $known.name ($known.version | default $slurm.version)) (get ($slurm.images | default dict) $known.name) -}}
{{- end -}}

{{/* Checks that the schema cannot express */}}

{{- define "slurm-operator.check" -}}
{{- with .Values.leaderElection -}}
{{- if not (and (lt (float64 .retryPeriod) (float64 .renewDeadline)) (lt (float64 .renewDeadline) (float64 .leaseDuration))) -}}
{{- fail "leaderElection: retryPeriod must be below renewDeadline, and that below leaseDuration" -}}
{{- end -}}
{{- end -}}
{{- if .Values.nodeLabels.enabled -}}
{{- if .Values.watchNamespaces -}}
{{- fail "nodeLabels.enabled: not together with watchNamespaces, since Nodes are in no namespace" -}}
{{- end -}}
{{- if ne (include "slurm-operator.watchNodes" .) "true" -}}
{{- fail "nodeLabels.enabled: needs watchNodes" -}}
{{- end -}}
{{- else if .Values.nodeLabels.fromSlurm -}}
{{- fail "nodeLabels.fromSlurm: needs nodeLabels.enabled" -}}
{{- end -}}
{{- if and .Values.nodeLabels.fromSlurm (not .Values.nodeLabels.clusters) -}}
{{- fail "nodeLabels.fromSlurm: needs nodeLabels.clusters, the Clusters that may label Nodes, or [\"*\"] for all" -}}
{{- end -}}
{{- if (.Values.virtualNodes).clusters -}}
{{- if .Values.watchNamespaces -}}
{{- fail "virtualNodes.clusters: not together with watchNamespaces, since Nodes are in no namespace" -}}
{{- end -}}
{{- if not .Values.jobs.enabled -}}
{{- fail "virtualNodes.clusters: needs jobs.enabled" -}}
{{- end -}}
{{- if ne (include "slurm-operator.watchNodes" .) "true" -}}
{{- fail "virtualNodes.clusters: needs watchNodes" -}}
{{- end -}}
{{- end -}}
{{- if .Values.drainRequestsNamespace -}}
{{- if .Values.watchNamespaces -}}
{{- fail "drainRequestsNamespace: not together with watchNamespaces, since a Node may have slurmd pods of any namespace" -}}
{{- end -}}
{{- if ne (include "slurm-operator.watchNodes" .) "true" -}}
{{- fail "drainRequestsNamespace: needs watchNodes" -}}
{{- end -}}
{{- end -}}
{{- if (.Values.nodeLife).namespaces -}}
{{- if .Values.watchNamespaces -}}
{{- fail "nodeLife.namespaces: not together with watchNamespaces, since Nodes are in no namespace" -}}
{{- end -}}
{{- if ne (include "slurm-operator.watchNodes" .) "true" -}}
{{- fail "nodeLife.namespaces: needs watchNodes" -}}
{{- end -}}
{{- else -}}
{{- with .Values.nodeLife -}}
{{- if or .nodeLabel .rebootBy .deleteNodes -}}
{{- fail "nodeLife.nodeLabel, rebootBy and deleteNodes: need nodeLife.namespaces, whose NodeSets may ask for it" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if (.Values.bridge).clusters -}}
{{- if .Values.watchNamespaces -}}
{{- fail "bridge.clusters: not together with watchNamespaces, since Nodes are in no namespace" -}}
{{- end -}}
{{- if not .Values.jobs.enabled -}}
{{- fail "bridge.clusters: needs jobs.enabled" -}}
{{- end -}}
{{- if ne (include "slurm-operator.watchNodes" .) "true" -}}
{{- fail "bridge.clusters: needs watchNodes" -}}
{{- end -}}
{{- else if (.Values.bridge).devices -}}
{{- fail "bridge.devices: needs bridge.clusters" -}}
{{- end -}}
{{- if and .Values.jobs.sylabs (not .Values.jobs.enabled) -}}
{{- fail "jobs.sylabs: needs jobs.enabled" -}}
{{- end -}}
{{- if and .Values.jobs.sylabsClusters (not .Values.jobs.sylabs) -}}
{{- fail "jobs.sylabsClusters: needs jobs.sylabs" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.service.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled: needs metrics.service.enabled" -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor.enabled: not together with metrics.serviceMonitor.enabled" -}}
{{- end -}}
{{- end -}}

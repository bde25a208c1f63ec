{{/* CRDs that are in the cluster and lack fields of this chart's: the API server would drop these fields from objects.
Namespaced releases may have no right to read CRDs, and Helm replaces them itself with crds.upgrade. Without a cluster
there is nothing to look up. helm fails where its user may not read them, and a template cannot catch that: checkCrds. */}}

{{- define "slurm-operator.checkCrds" -}}
{{- if not (or .Values.watchNamespaces (.Values.crds).upgrade (eq (toString .Values.checkCrds) "false")) -}}
{{- $lines := list -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" -}}
{{- $wanted := $.Files.Get $path | fromYaml -}}
{{- $name := $wanted.metadata.name -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- if $found -}}
{{- $version := first $wanted.spec.versions -}}
{{- $schema := dict -}}
{{- range $found.spec.versions -}}
{{- if eq .name $version.name -}}{{- $schema = dig "schema" "openAPIV3Schema" dict . -}}{{- end -}}
{{- end -}}
{{- if not $schema -}}
{{- $lines = append $lines (printf "%s: no version %s; it is of another operator (docs/from-slinky.md)" $name $version.name) -}}
{{- else -}}
{{- $missing := include "slurm-operator.missingFields" (dict "wanted" $version.schema.openAPIV3Schema "found" $schema "path" "") | splitList "\n" | compact -}}
{{- with $missing -}}
{{- $more := sub (len .) 8 -}}
{{- $lines = append $lines (printf "%s: %s%s" $name (join ", " (slice . 0 (min 8 (len .)))) (gt $more 0 | ternary (printf ", and %d more" $more) "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $lines -}}
{{- fail (printf "\nthe CRDs in the cluster are older than this chart, and lack these fields:\n  %s\nUpgrade them first, from the chart's directory: kubectl apply --server-side --force-conflicts -f crds/\nor let helm do it: --set crds.upgrade=true --take-ownership (docs/install.md#upgrade)\n" (join "\n  " .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Paths of fields that one schema has and another has not, one a line; nothing is said of fields below a missing one. */}}
{{- define "slurm-operator.missingFields" -}}
{{- $found := .found | default dict -}}
{{- $path := .path -}}
{{- $theirs := $found.properties | default dict -}}
{{- range $name, $schema := .wanted.properties -}}
{{- $below := printf "%s.%s" $path $name | trimPrefix "." -}}
{{- if hasKey $theirs $name -}}
{{- include "slurm-operator.missingFields" (dict "wanted" $schema "found" (get $theirs $name) "path" $below) -}}
{{- else }}
{{ $below }}
{{- end -}}
{{- end -}}
{{- if kindIs "map" .wanted.items -}}
{{- include "slurm-operator.missingFields" (dict "wanted" .wanted.items "found" $found.items "path" (printf "%s[]" $path)) -}}
{{- end -}}
{{- if kindIs "map" .wanted.additionalProperties -}}
{{- include "slurm-operator.missingFields" (dict "wanted" .wanted.additionalProperties "found" (kindIs "map" $found.additionalProperties | ternary $found.additionalProperties dict) "path" (printf "%s.*" $path)) -}}
{{- end -}}
{{- end -}}

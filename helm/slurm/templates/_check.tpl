{{/* Values of Slinky's chart of this name, which files/slinky-values.yaml lists, are refused with their new names. */}}

{{- define "slurm.checkSlinky" -}}
{{- $lines := list -}}
{{- range $key, $names := .Files.Get "files/slinky-values.yaml" | fromYaml -}}
{{- if hasKey $.Values $key -}}
{{- $found := include "slurm.slinkyNames" (dict "names" $names "value" (get $.Values $key) "path" $key) -}}
{{- $lines = concat $lines (splitList "\n" $found | compact) -}}
{{- end -}}
{{- end -}}
{{- with $lines -}}
{{- fail (printf "these are values of Slinky's chart %s, which has other names. Write instead (docs/from-slinky.md):\n  %s\n" $.Chart.Name (join "\n  " .)) -}}
{{- end -}}
{{- end -}}

{{/* One line for each of Slinky's names in a value. */}}
{{- define "slurm.slinkyNames" -}}
{{- if kindIs "string" .names }}
{{ .path }}: {{ .names }}
{{- else -}}
{{- $deeper := and (kindIs "map" .value) (not (empty .value)) (gt (len .names) (hasKey .names "_" | ternary 1 0)) -}}
{{- if $deeper -}}
{{- range $key, $value := .value -}}
{{- $path := printf "%s.%s" $.path $key -}}
{{- if or (hasKey $.names $key) (hasKey $.names "*") -}}
{{- include "slurm.slinkyNames" (dict "names" (hasKey $.names $key | ternary (get $.names $key) (get $.names "*")) "value" $value "path" $path) -}}
{{- else if hasKey $.names "_" }}
{{ $path }}: {{ get $.names "_" }}
{{- end -}}
{{- end -}}
{{- else if hasKey .names "_" }}
{{ .path }}: {{ get .names "_" }}
{{- end -}}
{{- end -}}
{{- end -}}

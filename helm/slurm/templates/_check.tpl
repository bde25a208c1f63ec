{{/* Values of Slinky's chart of this name, which files/slinky-values.yaml lists, are refused with their new names. */}}

{{- define "slurm.checkSlinky" -}}
{{- $lines := list -}}
{{- range $key, $names := .Files.Get "files/slinky-values.yaml" | fromYaml -}}
{{- if hasKey $.Values $key -}}
{{- $found := include "slurm.slinkyNames" (dict "names" $names "value" (get $.Values $key) "path" $key "rest" "") -}}
{{- $lines = concat $lines (splitList "\n" $found | compact) -}}
{{- end -}}
{{- end -}}
{{- with $lines -}}
{{- fail (printf "these are values of Slinky's chart %s, which has other names. `slurm-operator convert` converts them. Write instead (docs/from-slinky.md):\n  %s\n" $.Chart.Name (join "\n  " .)) -}}
{{- end -}}
{{- end -}}

{{/* One line for each of Slinky's names in a value. `rest` is said of keys that are not listed. */}}
{{- define "slurm.slinkyNames" -}}
{{- if kindIs "string" .names }}
{{ .path }}: {{ .names }}
{{- else -}}
{{- $rest := get .names "_" | default .rest -}}
{{- $list := and (kindIs "slice" .value) (hasKey .names "*") -}}
{{- $deeper := and (or $list (kindIs "map" .value)) (not (empty .value)) (gt (len .names) (hasKey .names "_" | ternary 1 0)) -}}
{{- if $deeper -}}
{{- range $key, $value := .value -}}
{{- $path := $list | ternary (printf "%s[%v]" $.path $key) (printf "%s.%v" $.path $key) -}}
{{- if or (hasKey $.names (toString $key)) (hasKey $.names "*") -}}
{{- $names := hasKey $.names (toString $key) | ternary (get $.names (toString $key)) (get $.names "*") -}}
{{- include "slurm.slinkyNames" (dict "names" $names "value" $value "path" $path "rest" $rest) -}}
{{- else if $rest }}
{{ $path }}: {{ $rest }}
{{- end -}}
{{- end -}}
{{- else if $rest }}
{{ .path }}: {{ $rest }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values of Slinky's chart of this name, which files/slinky-values.yaml lists, are refused with their new names. */}}

{{- define "slurm-operator.checkSlinky" -}}
{{- $lines := list -}}
{{- range $key, $names := .Files.Get "files/slinky-values.yaml" | fromYaml -}}
{{- if hasKey $.Values $key -}}
{{- $found := include "slurm-operator.slinkyNames" (dict "names" $names "value" (get $.Values $key) "path" $key "rest" "") -}}
{{- $lines = concat $lines (splitList "\n" $found | compact) -}}
{{- end -}}
{{- end -}}
{{- with $lines -}}
{{- fail (printf "these are values of Slinky's chart %s, which has other names. `slurm-operator convert` converts them. Write instead (docs/from-slinky.md):\n  %s\n" $.Chart.Name (join "\n  " .)) -}}
{{- end -}}
{{- end -}}

{{/* One line for each of Slinky's names in a value. `rest` is said of keys that are not listed. */}}
{{- define "slurm-operator.slinkyNames" -}}
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
{{- include "slurm-operator.slinkyNames" (dict "names" $names "value" $value "path" $path "rest" $rest) -}}
{{- else if $rest }}
{{ $path }}: {{ $rest }}
{{- end -}}
{{- end -}}
{{- else if $rest }}
{{ .path }}: {{ $rest }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* At an installation, a Lease of another release that was renewed lately and serves one of the same namespaces. One
whose Deployment has gone was uninstalled: an operator whose rights have gone with it cannot give its Lease back. */}}
{{- define "slurm-operator.checkReleases" -}}
{{- if and .Values.checkOtherOperators .Release.IsInstall -}}
{{- $own := printf "%s/%s" .Release.Namespace (include "slurm-operator.fullname" .) -}}
{{- range $place := .Values.watchNamespaces | empty | ternary (list "") (append (.Values.watchNamespaces | default list) .Release.Namespace | uniq) -}}
{{- range (lookup "coordination.k8s.io/v1" "Lease" $place "").items -}}
{{- $title := printf "%s/%s" .metadata.namespace .metadata.name -}}
{{- $serves := dig "annotations" "cluster.slinky.slurm.net/serves" "*" .metadata -}}
{{- $shared := $.Values.watchNamespaces -}}
{{- if ne $serves "*" -}}
{{- $theirs := splitList "," $serves -}}
{{- $shared = list -}}
{{- range $.Values.watchNamespaces | default $theirs -}}
{{- if has . $theirs -}}{{- $shared = append $shared . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $overlap := or (eq $serves "*") (not (empty $shared)) -}}
{{- $renewed := .spec.renewTime | default "1970-01-01T00:00:00.000000Z" | toDate "2006-01-02T15:04:05.999999Z07:00" | unixEpoch | int64 -}}
{{- $age := sub (now | unixEpoch | int64) $renewed -}}
{{- if and (eq (dig "labels" "cluster.slinky.slurm.net/operator" "" .metadata) "true") (ne $title $own) $overlap .spec.holderIdentity (lt $age 120) (gt $age -120) (lookup "apps/v1" "Deployment" .metadata.namespace .metadata.name) -}}
{{- fail (printf "\n%s (Lease %s) serves %s already: two releases of this operator must not serve the same namespace. Uninstall one of both, or give them different watchNamespaces. If no operator runs there, delete the Lease, or set checkOtherOperators=false\n" .spec.holderIdentity $title ($shared | empty | ternary "all namespaces" (join ", " $shared))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

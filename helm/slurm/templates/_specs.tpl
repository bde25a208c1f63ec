{{/* The specs of objects, made of maps, defaults and switches of the values. */}}

{{/* Writes a map over another one, in place: maps are merged, null takes a key out, anything else replaces. */}}
{{- define "slurm.merge" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- $old := get $into $key -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $into $key -}}
{{- else if and (kindIs "map" $value) (kindIs "map" $old) -}}
{{- include "slurm.merge" (dict "into" $old "from" $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The spec of one part: its defaults with what it says itself. Without defaults it is handed on as it is. */}}
{{- define "slurm.part" -}}
{{- if .defaults -}}
{{- $spec := deepCopy .defaults -}}
{{- include "slurm.merge" (dict "into" $spec "from" (deepCopy (.own | default dict))) -}}
{{- omit $spec "enabled" | toYaml -}}
{{- else -}}
{{- omit (.own | default dict) "enabled" | toYaml -}}
{{- end -}}
{{- end -}}

{{/* Whether a part is left out, by itself or by its defaults. */}}
{{- define "slurm.enabled" -}}
{{- if kindIs "invalid" .own -}}
{{- else if hasKey .own "enabled" -}}
{{- ne (toString .own.enabled) "false" | ternary "true" "" -}}
{{- else -}}
{{- ne (toString (get (.defaults | default dict) "enabled")) "false" | ternary "true" "" -}}
{{- end -}}
{{- end -}}

{{/* The spec of the Cluster: cluster, with accounting and partitions of their own values, and what `helm test` may do. */}}
{{- define "slurm.cluster" -}}
{{- $spec := deepCopy (.Values.cluster | default dict) -}}
{{- with .Values.accounting -}}
{{- $accounting := deepCopy . -}}
{{- include "slurm.merge" (dict "into" $accounting "from" ($spec.accounting | default dict)) -}}
{{- $_ := set $spec "accounting" $accounting -}}
{{- end -}}
{{- $partitions := $spec.partitions | default list -}}
{{- $more := 0 -}}
{{- range $name, $own := .Values.partitions -}}
{{- if include "slurm.enabled" (dict "own" $own) -}}
{{- range $spec.partitions -}}
{{- if eq .name $name -}}
{{- fail (printf "partitions.%s: cluster.partitions has a partition of this name already" $name) -}}
{{- end -}}
{{- end -}}
{{- $partitions = append $partitions (merge (dict "name" $name) (omit $own "enabled")) -}}
{{- $more = 1 -}}
{{- end -}}
{{- end -}}
{{- if $more -}}
{{- $_ := set $spec "partitions" $partitions -}}
{{- end -}}
{{- with (.Values.test).username -}}
{{- $auth := $spec.auth | default dict -}}
{{- /* Without a grant, Tokens of the namespace may have nobody; so it stays. */ -}}
{{- $grants := hasKey $auth "tokens" | ternary $auth.tokens (list (dict "usernames" (list "nobody"))) | default list -}}
{{- $_ := set $auth "tokens" (append $grants (dict "usernames" (list .))) -}}
{{- $_ := set $spec "auth" $auth -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{/* A switch of debug. */}}
{{- define "slurm.debug" -}}
{{- $debug := .root.Values.debug | default dict -}}
{{- if and (ne (toString (get $debug "enable")) "false") (ne (toString (get $debug "enabled")) "false") (get $debug .name) -}}true{{- end -}}
{{- end -}}

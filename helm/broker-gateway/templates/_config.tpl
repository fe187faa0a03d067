{{/* The gateway's configuration, and what the chart reads out of it. */}}

{{/* Change the map `into` by the map `from`: maps are merged, null removes, all else replaces. */}}
{{- define "broker-gateway.overlay" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $into $key -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "broker-gateway.overlay" (dict "into" (get $into $key) "from" $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.mode" -}}
{{- .Files.Get (printf "modes/%s.yaml" .Values.mode) -}}
{{- end -}}

{{/* gateway.yaml: the mode's own, `config` over it, and what other values say. */}}
{{- define "broker-gateway.config" -}}
{{- $config := get (include "broker-gateway.mode" . | fromYaml) "config" -}}
{{- include "broker-gateway.overlay" (dict "into" $config "from" (deepCopy .Values.config)) -}}
{{- if and .Values.rules (not (hasKey $config "rules")) -}}
{{- $_ := set $config "rules" (list "rules") -}}
{{- end -}}
{{- if include "broker-gateway.sealSecret" . -}}
{{- $keys := list -}}
{{- range .Values.sealKeys.names -}}
{{- $keys = append $keys (dict "file" (printf "secrets/seal/%s" .)) -}}
{{- end -}}
{{- range $config.clusters -}}
{{- if not (or (hasKey . "names") (include "broker-gateway.hasIds" .)) -}}
{{- $_ := set . "names" (dict "sealed" (dict "keys" $keys)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $from := .Values.service.proxyProtocolFrom -}}
{{- if and $from (ne .Values.mode "sidecar") -}}
{{- range $config.listeners -}}
{{- if not (hasKey . "proxy_protocol") -}}
{{- $_ := set . "proxy_protocol" (dict "from" $from) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Whether the brokers of a cluster have ids, by which clients reach them: those of Kafka and TubeMQ. */}}
{{- define "broker-gateway.hasIds" -}}
{{- regexMatch "^(kafka|tubemq)(\\+ssl)?://" (join "," .brokers) | ternary "true" "" -}}
{{- end -}}

{{/* Put into the map `found` each NAME that `value` names as secrets/NAME/KEY, with the path. */}}
{{- define "broker-gateway.named" -}}
{{- $found := .found -}}
{{- if or (kindIs "map" .value) (kindIs "slice" .value) -}}
{{- range .value -}}
{{- include "broker-gateway.named" (dict "value" . "found" $found) -}}
{{- end -}}
{{- else if kindIs "string" .value -}}
{{- $parts := splitList "/" .value -}}
{{- if and (eq (first $parts) "secrets") (gt (len $parts) 2) -}}
{{- $name := index $parts 1 -}}
{{- $_ := set $found $name (get $found $name | default .value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The names below secrets/ that gateway.yaml has, as a map to one path of each. */}}
{{- define "broker-gateway.namedSecrets" -}}
{{- $found := dict -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- include "broker-gateway.named" (dict "value" $config "found" $found) -}}
{{- toYaml $found -}}
{{- end -}}

{{/* The port of an address to listen on. `bind`: the address; `of`: whose it is. */}}
{{- define "broker-gateway.port" -}}
{{- $port := regexFind "[0-9]+$" (toString .bind) -}}
{{- if not $port -}}
{{- fail (printf (print "%s: the bind %q ends with no number, which pods and Services need; "
  "write it as \":6650\"") .of (toString .bind)) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- define "broker-gateway.isLoopback" -}}
{{- regexMatch "^(127\\.|localhost:|\\[::1\\]:)" (toString .) | ternary "true" "" -}}
{{- end -}}

{{/* How many ids of brokers there are, written as `0-2,7` or as a list. `ids`; `of`: whose. */}}
{{- define "broker-gateway.count" -}}
{{- $count := 0 -}}
{{- range splitList "," (join "," .ids) -}}
{{- if not (regexMatch "^[0-9]+(-[0-9]+)?$" (trim .)) -}}
{{- fail (printf (print "%s: %q is no id and no range of ids, so nobody knows how many ports the "
  "pods and the Service need; write them as \"0-2\"") $.of (trim .)) -}}
{{- end -}}
{{- $ends := splitList "-" (trim .) -}}
{{- $count = add1 (sub (last $ends | int) (first $ends | int)) | add $count -}}
{{- end -}}
{{- $count -}}
{{- end -}}

{{/* What clients connect to, as `ports`, a list of `name`, `port`, `scheme`, and `begins`: whether
clients begin there, and do not come only later, for one broker. No loopback. */}}
{{- define "broker-gateway.ports" -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- $taken := dict -}}
{{- $ports := list -}}
{{- range $listener := $config.listeners -}}
{{- $of := printf "listener %s of config" $listener.name -}}
{{- $protocol := $listener.protocol | default "pulsar" -}}
{{- $name := ternary $protocol (printf "%s-ssl" $protocol) (empty $listener.tls) -}}
{{- $scheme := ternary $protocol (printf "%s+ssl" $protocol) (empty $listener.tls) -}}
{{- $several := kindIs "slice" $listener.bind -}}
{{- $is_reached := false -}}
{{- $found := list -}}
{{- range $bind := (ternary $listener.bind (list $listener.bind) $several) -}}
{{- if not (include "broker-gateway.isLoopback" $bind) -}}
{{- $is_reached = true -}}
{{- $port := include "broker-gateway.port" (dict "bind" $bind "of" $of) -}}
{{- $found = append $found (dict "name" $name "port" (int $port) "begins" true) -}}
{{- end -}}
{{- end -}}
{{- $brokers := dig "advertise" "ports" dict $listener -}}
{{- if and $is_reached $brokers -}}
{{- $ids := dict "ids" $brokers.ids "of" (printf "advertise.ports.ids of %s" $of) -}}
{{- range until (include "broker-gateway.count" $ids | int) -}}
{{- $port := add $brokers.first_port . | int -}}
{{- $found = append $found (dict "name" (printf "port-%d" $port) "port" $port "begins" false) -}}
{{- end -}}
{{- end -}}
{{- range $found -}}
{{- if hasKey $taken .name -}}
{{- $_ := set . "name" (printf "port-%d" .port) -}}
{{- end -}}
{{- if not (hasKey $taken (toString .port)) -}}
{{- $ports = append $ports (set . "scheme" $scheme) -}}
{{- end -}}
{{- $_ := set $taken .name true -}}
{{- $_ := set $taken (toString .port) true -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "ports" $ports) -}}
{{- end -}}

{{- define "broker-gateway.adminPort" -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- $bind := dig "admin" "bind" "" $config -}}
{{- if or (not $bind) (include "broker-gateway.isLoopback" $bind) -}}
{{- fail (print "config.admin.bind: probes come from outside the pod, and reach no loopback "
  "address; leave it out, or write \":8080\"") -}}
{{- end -}}
{{- include "broker-gateway.port" (dict "bind" $bind "of" "config.admin") -}}
{{- end -}}

{{/* Whole MiB of a size of the gateway (64KiB, 1GB) or of Kubernetes (512Mi); empty: no such. */}}
{{- define "broker-gateway.mebibytes" -}}
{{- $text := toString . | lower | trimSuffix "b" -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)? ?[kmg]?i?$" $text -}}
{{- $unit := regexFind "[kmg]i?$" $text -}}
{{- $units := dict "" 1.0 "k" 1e3 "m" 1e6 "g" 1e9 -}}
{{- $units = merge $units (dict "ki" 1024.0 "mi" 1048576.0 "gi" 1073741824.0) -}}
{{- $bytes := mulf (regexFind "^[0-9.]+" $text | float64) (get $units $unit) -}}
{{- divf $bytes 1048576.0 | ceil | int -}}
{{- end -}}
{{- end -}}

{{/* Whole seconds of a duration, rounded up. `value`: as it is written; `of`: whose it is. */}}
{{- define "broker-gateway.seconds" -}}
{{- $text := toString .value -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?( ?(ms|s|m|h))?$" (lower $text)) -}}
{{- fail (printf (print "%s: %q cannot be compared with terminationGracePeriodSeconds; write it "
  "as 25s") .of $text) -}}
{{- end -}}
{{- $unit := regexFind "[a-z]+$" (lower $text) | default "s" -}}
{{- $seconds := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) $unit -}}
{{- mulf (regexFind "^[0-9.]+" $text | float64) $seconds | ceil | int -}}
{{- end -}}

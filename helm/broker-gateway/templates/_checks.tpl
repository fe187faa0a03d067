{{/* Mistakes that the schema of values cannot see: each fails, and says what to do. */}}

{{- define "broker-gateway.checks" -}}
{{- include "broker-gateway.checkSecrets" . -}}
{{- include "broker-gateway.checkTls" . -}}
{{- include "broker-gateway.checkRules" . -}}
{{- include "broker-gateway.checkMemory" . -}}
{{- if ne .Values.mode "sidecar" -}}
{{- include "broker-gateway.checkGrace" . -}}
{{- include "broker-gateway.checkScale" . -}}
{{- include "broker-gateway.checkNetwork" . -}}
{{- include "broker-gateway.checkBrokers" . -}}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.monitoring.podMonitor.enabled -}}
{{- fail (print "monitoring: a ServiceMonitor and a PodMonitor would read everything twice; "
  "enable one of them") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkSecrets" -}}
{{- range list "tls" "seal" -}}
{{- if hasKey $.Values.secrets . -}}
{{- fail (printf (print "secrets.%s: the chart mounts another Secret there; choose another name, "
  "or use tls.secretName or sealKeys.existingSecret") .) -}}
{{- end -}}
{{- end -}}
{{- range $name, $path := include "broker-gateway.namedSecrets" . | fromYaml -}}
{{- if eq $name "tls" -}}
{{- if not (include "broker-gateway.tlsSecret" $) -}}
{{- fail (printf (print "config names %s, but there is no certificate; set tls.secretName, or "
  "tls.certManager.enabled to true") $path) -}}
{{- end -}}
{{- else if eq $name "seal" -}}
{{- if not (include "broker-gateway.sealSecret" $) -}}
{{- fail (printf (print "config names %s, but sidecars make seal keys of their own; set "
  "sealKeys.existingSecret") $path) -}}
{{- end -}}
{{- else if not (hasKey $.Values.secrets $name) -}}
{{- fail (printf (print "config names %s, but no Secret is mounted there; set "
  "secrets.%s.secretName") $path $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkTls" -}}
{{- if .Values.tls.certManager.enabled -}}
{{- if .Values.tls.secretName -}}
{{- fail (print "tls: cert-manager makes a Secret of its own; leave out tls.secretName, or "
  "tls.certManager") -}}
{{- end -}}
{{- if or (not .Values.tls.certManager.issuer.name) (not .Values.tls.certManager.dnsNames) -}}
{{- fail "tls.certManager: it needs an issuer and hosts; set issuer.name and dnsNames" -}}
{{- end -}}
{{- end -}}
{{- $named := include "broker-gateway.namedSecrets" . | fromYaml -}}
{{- if and (include "broker-gateway.tlsSecret" .) (not (hasKey $named "tls")) -}}
{{- fail (print "tls: there is a certificate, but config does not use it; name "
  "secrets/tls/tls.crt and secrets/tls/tls.key in tls.certificates of a listener") -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkRules" -}}
{{- $ids := dict -}}
{{- range $file, $document := .Values.rules -}}
{{- range $document.rules -}}
{{- if hasKey $ids .id -}}
{{- fail (printf "rules: the id %s of %s is also in %s; choose another" .id $file
  (get $ids .id)) -}}
{{- end -}}
{{- $_ := set $ids .id $file -}}
{{- end -}}
{{- end -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- range $config.listeners -}}
{{- if and (has .access (list "closed" "shadow")) (not $config.rules) -}}
{{- fail (printf (print "rules: access of listener %s is %s, and no rule allows anything; add a "
  "file with allow") .name .access) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkGrace" -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- $grace := dig "deadlines" "grace" "20s" $config -}}
{{- $drain := include "broker-gateway.seconds" (dict
  "value" $grace "of" "config.deadlines.grace") | int -}}
{{- $sending := ternary 5 0 (not (empty (dig "usage" "topic" "" $config))) -}}
{{- $sleep := int .Values.preStopSleepSeconds -}}
{{- $taken := add $sleep $drain $sending -}}
{{- if le (int .Values.terminationGracePeriodSeconds) (int $taken) -}}
{{- fail (printf (print "terminationGracePeriodSeconds is %d, but preStopSleepSeconds (%d), "
  "config.deadlines.grace (%d) and config.usage.topic (%d) take %d: pods would be killed with "
  "clients on them; make it %d or more")
  (int .Values.terminationGracePeriodSeconds) $sleep $drain $sending $taken (add1 $taken)) -}}
{{- end -}}
{{- end -}}

{{/* What the gateway can take, in MiB, by files/memory.yaml: for itself, for a few rules, for each
connection of each listener, and for both bounds; more with TLS. A pod beyond its limit is killed with
all its clients. */}}
{{- define "broker-gateway.checkMemory" -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- $mode := include "broker-gateway.mode" . | fromYaml -}}
{{- $limit := dig "limits" "memory" "" (default $mode.resources .Values.resources) -}}
{{- $connections := dig "limits" "connections" 10000 $config -}}
{{- $buffered := dig "limits" "buffered" "256MiB" $config -}}
{{- $remembered := dig "limits" "remembered" "" $config -}}
{{- $waits := include "broker-gateway.mebibytes" $buffered -}}
{{- $keeps := include "broker-gateway.mebibytes" (default $buffered $remembered) -}}
{{- $keeps = ternary $keeps (mul 2 (int $keeps)) (not (empty $remembered)) -}}
{{- $has := include "broker-gateway.mebibytes" $limit -}}
{{- if and $has $waits $keeps (regexMatch "^[0-9]+$" (toString $connections)) -}}
{{- $memory := .Files.Get "files/memory.yaml" | fromYaml -}}
{{- $takes := 0.0 -}}
{{- $kind := "plain" -}}
{{- range $config.listeners -}}
{{- $its := ternary "plain" "tls" (empty .tls) -}}
{{- $kind = ternary $kind "tls" (empty .tls) -}}
{{- $takes = divf (mulf (int $connections) (get $memory.connection $its)) 1024 | addf $takes -}}
{{- end -}}
{{- $rules := ternary 0 (get $memory.few_rules $kind) (empty $config.rules) -}}
{{- $takes = addf $takes (get $memory.process $kind) $rules -}}
{{- $takes = mulf (int $keeps) (get $memory.remembered $kind) | addf $takes -}}
{{- $takes = mulf (int $waits) (get $memory.buffered $kind) | addf $takes | ceil | int -}}
{{- if lt (int $has) $takes -}}
{{- fail (printf (print "resources.limits.memory is %s, but config.limits (connections: %v, "
  "remembered: %d MiB, buffered: %v) can take %d MiB: pods would be killed with clients on them; "
  "raise it, or lower these") $limit $connections (int $keeps) $buffered $takes) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkScale" -}}
{{- $scaled := .Values.autoscaling.enabled -}}
{{- $least := ternary .Values.autoscaling.minReplicas .Values.replicas $scaled | int -}}
{{- if .Values.podDisruptionBudget.enabled -}}
{{- $away := int .Values.podDisruptionBudget.maxUnavailable -}}
{{- if lt $least 2 -}}
{{- fail (print "podDisruptionBudget: one replica cannot stay while its node is drained; have "
  "two or more, or set podDisruptionBudget.enabled to false") -}}
{{- else if ge $away $least -}}
{{- fail (printf (print "podDisruptionBudget: maxUnavailable is %d of %d replicas, so all could "
  "end at once; make it less") $away $least) -}}
{{- end -}}
{{- end -}}
{{- if $scaled -}}
{{- if gt $least (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling: minReplicas is more than maxReplicas; raise maxReplicas" -}}
{{- end -}}
{{- if not (or .Values.autoscaling.cpu .Values.autoscaling.connections.average) -}}
{{- fail "autoscaling: nothing says when to scale; set cpu or connections.average" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkNetwork" -}}
{{- if and .Values.service.loadBalancerSourceRanges (ne .Values.service.type "LoadBalancer") -}}
{{- fail (print "service.loadBalancerSourceRanges: only a balancer keeps clients out by it; set "
  "service.type to LoadBalancer, or use networkPolicy.clients") -}}
{{- end -}}
{{- if not (get (include "broker-gateway.ports" . | fromYaml) "ports") -}}
{{- fail (print "config.listeners: all bind to loopback, where no other pod reaches them; bind "
  "one to \":6650\"") -}}
{{- end -}}
{{- $taken := dict -}}
{{- range get (include "broker-gateway.ports" . | fromYaml) "ports" -}}
{{- if lt (int .port) 1024 -}}
{{- fail (printf (print "config.listeners: port %d needs rights that the gateway's user lacks; "
  "listen on one above 1023, and let service.ports map it") (int .port)) -}}
{{- end -}}
{{- $_ := set $taken (toString .port) true -}}
{{- end -}}
{{- range $port, $_ := .Values.service.ports -}}
{{- if not (hasKey $taken $port) -}}
{{- fail (printf "service.ports: no listener has port %s, which clients could reach" $port) -}}
{{- end -}}
{{- end -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- $url := dig "store" "url" "unix:" $config -}}
{{- $shut := and .Values.networkPolicy.enabled (not .Values.networkPolicy.egress) -}}
{{- if and $shut (not (hasPrefix "unix:" $url)) -}}
{{- fail (printf (print "networkPolicy.egress: no rule lets pods reach the store %s, so limits "
  "would not be shared; add one, or set networkPolicy.enabled to false") $url) -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.checkBrokers" -}}
{{- $open := list -}}
{{- range .Values.networkPolicy.brokers.ports -}}
{{- $open = append $open (toString .) -}}
{{- end -}}
{{- $config := include "broker-gateway.config" . | fromYaml -}}
{{- range $name, $cluster := $config.clusters -}}
{{- $urls := $cluster.brokers -}}
{{- if kindIs "slice" $urls -}}
{{- $urls = join "," $urls -}}
{{- end -}}
{{- $ports := regexFindAll ":[0-9]+(,|$)" (toString $urls | nospace) -1 -}}
{{- $targets := dig "targets" "ports" list $cluster -}}
{{- $ports = concat $ports (regexFindAll "[0-9]+" (toString $targets) -1) -}}
{{- range $ports -}}
{{- $port := regexFind "[0-9]+" . -}}
{{- if and $.Values.networkPolicy.enabled (not (has $port $open)) -}}
{{- fail (printf (print "networkPolicy.brokers.ports: pods could not reach port %s of cluster %s; "
  "add it, or set networkPolicy.enabled to false") $port $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

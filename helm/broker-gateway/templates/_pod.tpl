{{/* Parts of pods that a Deployment's container and a sidecar have in common. */}}

{{- define "broker-gateway.securityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* A container without its name, ports, readiness and life cycle. */}}
{{- define "broker-gateway.container" -}}
image: {{ include "broker-gateway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [gateway, run, /etc/broker-gateway/gateway.yaml]
env:
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
startupProbe:
  httpGet: {path: /startupz, port: admin}
  {{- toYaml .Values.probes.startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /livez, port: admin}
  {{- toYaml .Values.probes.liveness | nindent 2 }}
resources:
  {{- $mode := include "broker-gateway.mode" . | fromYaml }}
  {{- toYaml (default $mode.resources .Values.resources) | nindent 2 }}
securityContext:
  {{- include "broker-gateway.securityContext" . | nindent 2 }}
volumeMounts:
  {{- include "broker-gateway.volumeMounts" . | nindent 2 }}
{{- end -}}

{{/* Rules and secrets are mounted as folders: files behind a subPath would never change. */}}
{{- define "broker-gateway.volumeMounts" -}}
{{- $secrets := include "broker-gateway.mountedSecrets" . | fromYaml -}}
- name: broker-gateway-config
  mountPath: /etc/broker-gateway/gateway.yaml
  subPath: gateway.yaml
  readOnly: true
{{- if .Values.rules }}
- name: broker-gateway-rules
  mountPath: /etc/broker-gateway/rules
  readOnly: true
{{- end }}
{{- range $name, $_ := $secrets }}
- name: broker-gateway-secret-{{ $name }}
  mountPath: /etc/broker-gateway/secrets/{{ $name }}
  readOnly: true
{{- end }}
- name: broker-gateway-data
  mountPath: /var/lib/broker-gateway
- name: broker-gateway-tmp
  mountPath: /tmp
{{- end -}}

{{/* Volumes. `root`: the chart's scope; `mode`: the rights of secret files, in octal digits. */}}
{{- define "broker-gateway.volumes" -}}
{{- $root := .root -}}
{{- $mode := .mode -}}
- name: broker-gateway-config
  configMap: {name: {{ include "broker-gateway.fullname" $root }}}
{{- if $root.Values.rules }}
- name: broker-gateway-rules
  configMap: {name: {{ include "broker-gateway.fullname" $root }}-rules}
{{- end }}
{{- range $name, $secret := include "broker-gateway.mountedSecrets" $root | fromYaml }}
- name: broker-gateway-secret-{{ $name }}
  secret:
    secretName: {{ $secret.secretName }}
    defaultMode: {{ $mode }}
    {{- with $secret.items }}
    items:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
- name: broker-gateway-data
  emptyDir:
    {{- toYaml $root.Values.data | nindent 4 }}
- name: broker-gateway-tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* All Secrets by the NAME of their folder, as `secretName` and `items`. */}}
{{- define "broker-gateway.mountedSecrets" -}}
{{- $named := include "broker-gateway.namedSecrets" . | fromYaml -}}
{{- $all := deepCopy .Values.secrets -}}
{{- if hasKey $named "tls" -}}
{{- $_ := set $all "tls" (dict "secretName" (include "broker-gateway.tlsSecret" .)) -}}
{{- end -}}
{{- if hasKey $named "seal" -}}
{{- $items := list -}}
{{- range .Values.sealKeys.names -}}
{{- $items = append $items (dict "key" . "path" .) -}}
{{- end -}}
{{- $secret := dict "secretName" (include "broker-gateway.sealSecret" .) "items" $items -}}
{{- $_ := set $all "seal" $secret -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

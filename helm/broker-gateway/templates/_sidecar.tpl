{{/*
For pods of other charts, which have this one as a dependency with `mode: sidecar`: a map with
`initContainers` and `volumes`, to be included in the pod's spec. Its argument is this chart's
scope: (index .Subcharts "broker-gateway"). README.md shows it in a chart.

The gateway starts before the application and ends after it. It has no readiness probe: a broker
that is away would take the application out of its Service, too. Secrets are mounted in the gateway
alone, readable by its user without the pod's fsGroup, which belongs to the application.
*/}}
{{- define "broker-gateway.sidecar" -}}
{{- if ne .Values.mode "sidecar" -}}
{{- fail "broker-gateway.sidecar: mode is not sidecar, so there is no ConfigMap for it; set it" -}}
{{- end -}}
initContainers:
  - name: broker-gateway
    restartPolicy: Always
    {{- include "broker-gateway.container" . | nindent 4 }}
    ports:
      - {name: admin, containerPort: {{ include "broker-gateway.adminPort" . }}}
volumes:
  {{- include "broker-gateway.volumes" (dict "root" . "mode" "0444") | nindent 2 }}
{{- end -}}

{{/* For an annotation of these pods, so that a changed configuration rolls them. */}}
{{- define "broker-gateway.checksum" -}}
{{- include "broker-gateway.config" . | sha256sum -}}
{{- end -}}

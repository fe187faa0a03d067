{{/* Names and labels of objects. */}}

{{- define "broker-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 characters: suffixes such as -admin follow. */}}
{{- define "broker-gateway.fullname" -}}
{{- $name := include "broker-gateway.name" . -}}
{{- $both := printf "%s-%s" .Release.Name $name -}}
{{- $whole := ternary .Release.Name $both (contains $name .Release.Name) -}}
{{- default $whole .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "broker-gateway.component" -}}
{{- ternary "sidecar" "gateway" (eq .Values.mode "sidecar") -}}
{{- end -}}

{{/* What tells this release's gateways from other pods. Selectors cannot change, nor can this. */}}
{{- define "broker-gateway.selector" -}}
app.kubernetes.io/name: {{ include "broker-gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ include "broker-gateway.component" . }}
{{- end -}}

{{/* Labels without the component, which some objects have of their own. */}}
{{- define "broker-gateway.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/name: {{ include "broker-gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "broker-gateway.labels" -}}
{{ include "broker-gateway.commonLabels" . }}
app.kubernetes.io/component: {{ include "broker-gateway.component" . }}
{{- end -}}

{{- define "broker-gateway.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "broker-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{- printf "%s-tls" (include "broker-gateway.fullname" .) -}}
{{- else -}}
{{- .Values.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- define "broker-gateway.sealSecret" -}}
{{- if .Values.sealKeys.existingSecret -}}
{{- .Values.sealKeys.existingSecret -}}
{{- else if ne .Values.mode "sidecar" -}}
{{- printf "%s-seal" (include "broker-gateway.fullname" .) -}}
{{- end -}}
{{- end -}}

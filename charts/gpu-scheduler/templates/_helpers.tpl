{{- define "gpu-scheduler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "gpu-scheduler.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "gpu-scheduler.webhookName" -}}
{{ include "gpu-scheduler.fullname" . }}-webhook
{{- end }}

{{- define "gpu-scheduler.agentName" -}}
{{ include "gpu-scheduler.fullname" . }}-agent
{{- end }}

{{/* Labels of everything; (list context name component) */}}
{{- define "gpu-scheduler.labels" -}}
{{- $context := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_" | trunc 63 }}
{{ include "gpu-scheduler.selector" . }}
app.kubernetes.io/component: {{ index . 2 }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: gpu-scheduler
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
{{- end }}

{{- define "gpu-scheduler.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- define "gpu-scheduler.schedulerLabels" -}}
{{ include "gpu-scheduler.labels" (list . (include "gpu-scheduler.name" .) "scheduler") }}
{{- end }}
{{- define "gpu-scheduler.schedulerSelector" -}}
{{ include "gpu-scheduler.selector" (list . (include "gpu-scheduler.name" .)) }}
{{- end }}
{{- define "gpu-scheduler.webhookLabels" -}}
{{ include "gpu-scheduler.labels" (list . (printf "%s-webhook" (include "gpu-scheduler.name" .)) "webhook") }}
{{- end }}
{{- define "gpu-scheduler.webhookSelector" -}}
{{ include "gpu-scheduler.selector" (list . (printf "%s-webhook" (include "gpu-scheduler.name" .))) }}
{{- end }}
{{- define "gpu-scheduler.agentLabels" -}}
{{ include "gpu-scheduler.labels" (list . (printf "%s-agent" (include "gpu-scheduler.name" .)) "agent") }}
{{- end }}
{{- define "gpu-scheduler.agentSelector" -}}
{{ include "gpu-scheduler.selector" (list . (printf "%s-agent" (include "gpu-scheduler.name" .))) }}
{{- end }}

{{- define "gpu-scheduler.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "gpu-scheduler.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* Containers of one pod share its account; only a pod of its own can have another. */}}
{{- define "gpu-scheduler.webhookServiceAccount" -}}
{{- if .Values.webhook.separate -}}
{{ include "gpu-scheduler.webhookName" . }}
{{- else -}}
{{ include "gpu-scheduler.serviceAccount" . }}
{{- end -}}
{{- end }}

{{- define "gpu-scheduler.agentServiceAccount" -}}
{{- if .Values.agent.serviceAccount.create -}}
{{ default (include "gpu-scheduler.agentName" .) .Values.agent.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.agent.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* image: and imagePullPolicy: of a component; (list context its-own-section) */}}
{{- define "gpu-scheduler.image" -}}
{{- $image := mergeOverwrite (deepCopy (index . 0).Values.image) (deepCopy (index . 1)) -}}
image: {{ printf "%s:%s" $image.repository $image.tag | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{- define "gpu-scheduler.leaseNamespace" -}}
{{ default .Release.Namespace .Values.leases.namespace }}
{{- end }}

{{- define "gpu-scheduler.tlsSecret" -}}
{{ default (printf "%s-tls" (include "gpu-scheduler.webhookName" .)) .Values.webhook.tlsSecret }}
{{- end }}

{{/* "true" where the webhook makes its own certificate and writes the caBundle itself. */}}
{{- define "gpu-scheduler.selfSigned" -}}
{{- if not (or .Values.webhook.caBundle .Values.webhook.certManager.enabled) }}true{{ end -}}
{{- end }}

{{- define "gpu-scheduler.names" -}}
{{- concat (list .Values.scheduler.name) .Values.scheduler.names | uniq | toJson -}}
{{- end }}

{{/* Where the API server is, when the values say it. */}}
{{- define "gpu-scheduler.apiServerEnv" -}}
{{- with .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
{{- end }}
{{- with .Values.apiServer.port }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ . | toString | quote }}
{{- end }}
{{- end }}

{{/* The webhook's container, in the scheduler's pod or in one of its own. */}}
{{- define "gpu-scheduler.webhookContainer" -}}
- name: webhook
  {{- include "gpu-scheduler.image" (list . .Values.webhook.image) | nindent 2 }}
  command: [gpu-scheduler]
  args:
    - webhook
    - --bind=0.0.0.0
    - --port={{ .Values.webhook.port }}
    - --health-port={{ .Values.webhook.healthPort }}
    {{- if include "gpu-scheduler.selfSigned" . }}
    - --self-signed
    - --secret={{ include "gpu-scheduler.tlsSecret" . }}
    - --namespace={{ .Release.Namespace }}
    - --service={{ include "gpu-scheduler.webhookName" . }}
    - --webhook-config={{ include "gpu-scheduler.webhookName" . }}
    {{- else }}
    - --tls-cert=/etc/gpu-scheduler/tls/tls.crt
    - --tls-key=/etc/gpu-scheduler/tls/tls.key
    {{- end }}
    {{- range include "gpu-scheduler.names" . | fromJsonArray }}
    - --scheduler-name={{ . }}
    {{- end }}
    {{- range .Values.webhook.excludeNamespaces }}
    - --exclude-namespace={{ . }}
    {{- end }}
    - --device-naming={{ .Values.deviceNaming }}
    {{- if .Values.webhook.nvidiaVisibleDevices }}
    - --nvidia-visible-devices
    {{- end }}
    {{- if .Values.kubeletChooses }}
    - --kubelet-chooses
    {{- end }}
    {{- with .Values.webhook.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "gpu-scheduler.apiServerEnv" . | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  ports:
    - {name: https, containerPort: {{ .Values.webhook.port }}}
    - {name: webhook-health, containerPort: {{ .Values.webhook.healthPort }}}
  livenessProbe:
    httpGet: {path: /health, port: webhook-health}
    periodSeconds: 10
  readinessProbe:
    httpGet: {path: /ready, port: webhook-health}
    periodSeconds: 5
  resources:
    {{- toYaml .Values.webhook.resources | nindent 4 }}
  securityContext:
    {{- toYaml .Values.securityContext | nindent 4 }}
  {{- if not (include "gpu-scheduler.selfSigned" .) }}
  volumeMounts:
    - {name: tls, mountPath: /etc/gpu-scheduler/tls, readOnly: true}
  {{- end }}
{{- end }}

{{- define "gpu-scheduler.webhookVolumes" -}}
{{- if not (include "gpu-scheduler.selfSigned" .) }}
- name: tls
  secret:
    secretName: {{ include "gpu-scheduler.tlsSecret" . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* clientConfig of a webhook; (list context path) */}}
{{- define "gpu-scheduler.clientConfig" -}}
{{- $context := index . 0 -}}
clientConfig:
  service:
    name: {{ include "gpu-scheduler.webhookName" $context }}
    namespace: {{ $context.Release.Namespace }}
    path: {{ index . 1 }}
    port: 443
  {{- with $context.Values.webhook.caBundle }}
  caBundle: {{ . }}
  {{- end }}
{{- end }}

{{/* What all webhooks have in common. */}}
{{- define "gpu-scheduler.webhookRules" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: {{ .Values.webhook.failurePolicy }}
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
{{- with .Values.webhook.excludeNamespaces }}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "gpu-scheduler.certificateAnnotation" -}}
{{- if .Values.webhook.certManager.enabled }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "gpu-scheduler.webhookName" . }}
{{- end }}
{{- end }}

{{- define "qtype.labels" -}}
app.kubernetes.io/name: qtype
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "qtype.selector" -}}
app.kubernetes.io/name: qtype
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "qtype.configMap" -}}
{{ .Values.application.existingConfigMap | default (printf "%s-application" .Release.Name) }}
{{- end }}

{{- define "qtype.pod" -}}
{{- with .root.Values }}
metadata:
  labels:
    {{- include "qtype.selector" $ | nindent 4 }}
  annotations:
    checksum/application: {{ $.configMap | default (toJson .application) | sha256sum }}
    {{- with .podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  {{- with .imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  terminationGracePeriodSeconds: {{ add $.drainSeconds 15 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "qtype.selector" $ | nindent 10 }}
  volumes:
    - name: application
      configMap: {name: {{ $.configMap | default (include "qtype.configMap" $.root) }}}
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
    {{- if .temporal.blobsClaim }}
    - name: blobs
      persistentVolumeClaim: {claimName: {{ .temporal.blobsClaim }}}
    {{- end }}
  containers:
    - name: {{ $.component }}
      image: "{{ .image.repository }}:{{ $.tag | default .image.tag | default $.root.Chart.AppVersion }}"
      imagePullPolicy: {{ .image.pullPolicy }}
      args: {{- toYaml $.args | nindent 8 }}
      workingDir: /app
      {{- if .secret }}
      envFrom:
        - secretRef: {name: {{ .secret }}}
      {{- end }}
      {{- with $.ports }}
      ports: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $.probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      resources: {{- toYaml $.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: application, mountPath: /app, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if .temporal.blobsClaim }}
        - {name: blobs, mountPath: /blobs}
        {{- end }}
  {{- with .nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

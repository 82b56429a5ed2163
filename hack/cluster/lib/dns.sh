# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Runs CoreDNS, so that pods find services by name. It answers only for names of the cluster and forwards no query.

# add_dns starts CoreDNS in a running cluster, unless CoreDNS runs there.
add_dns() {
	! as_admin --namespace kube-system get deployment coredns >>"$state/log/up.log" 2>&1 || return 0
	say "starting DNS, which the cluster was started without"
	dns_service_address="$(sed -n 's/^clusterDNS: \[\(.*\)\]$/\1/p' "$state/etc/kubelet.yaml")"
	start_dns
	await_dns
}

start_dns() {
	await_in_cluster "the image of CoreDNS is imported" import_dns
	await_in_cluster "the API server takes the objects of DNS" apply_dns
}

await_dns() {
	await_in_cluster "DNS answers" as_admin --namespace kube-system wait --for=condition=Available deployment/coredns --timeout=5s
}

import_dns() {
	in_node ctr -n k8s.io images import - <"$images/coredns.tar"
}

apply_dns() {
	as_admin apply --server-side -f - <<EOT
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: coredns}
rules:
- apiGroups: [""]
  resources: [services, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: coredns}
subjects:
- {kind: ServiceAccount, name: coredns, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:5353 {
        errors
        health :8080
        ready :8181
        kubernetes cluster.local in-addr.arpa
        cache 5
    }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: coredns
  namespace: kube-system
  labels: {k8s-app: kube-dns}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata:
      labels: {k8s-app: kube-dns}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      containers:
      - name: coredns
        image: $dns_image
        imagePullPolicy: Never
        args: [-conf, /etc/coredns/Corefile]
        ports:
        - {name: dns, containerPort: 5353, protocol: UDP}
        - {name: dns-tcp, containerPort: 5353, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        livenessProbe: {httpGet: {path: /health, port: 8080}, initialDelaySeconds: 10, failureThreshold: 6}
        resources: {requests: {cpu: 10m, memory: 30Mi}, limits: {memory: 170Mi}}
        securityContext:
          runAsNonRoot: true
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
          seccompProfile: {type: RuntimeDefault}
        volumeMounts: [{name: configuration, mountPath: /etc/coredns, readOnly: true}]
      volumes:
      - name: configuration
        configMap: {name: coredns}
---
apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}
spec:
  clusterIP: $dns_service_address
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, targetPort: dns, protocol: UDP}
  - {name: dns-tcp, port: 53, targetPort: dns-tcp, protocol: TCP}
EOT
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Writes the configuration files of the parts of the node. Their paths are paths in the node, where the state folder is
# /run/cluster/state.

# write_configuration IPTABLES SHARE writes all of them. SHARE is the folder that containers have at /shared, empty for
# none.
write_configuration() {
	local etc="$state/etc"
	mkdir -p "$etc/cni"
	# The settings of node/init.
	cat >"$etc/environment" <<EOT
cluster='$cluster'
node_address='$node_address'
service_range='$service_range'
pod_range='$pod_range'
iptables_kind='$1'
pause_image='$pause_image'
EOT
	# Pods must not wait for name servers that the node can't reach.
	printf '# The node has no name server outside of the cluster.\n' >"$etc/resolv.conf"
	printf '%s' "$2" >"$etc/shared"
	write_containerd_configuration "$2" >"$etc/containerd.toml"
	write_cni_configuration >"$etc/cni/10-cluster.conflist"
	write_kubelet_configuration >"$etc/kubelet.yaml"
	write_proxy_configuration >"$etc/kube-proxy.yaml"
}

# require_shared_folder DIR prints the absolute path of the folder, which is the same on the host and in the node.
require_shared_folder() {
	local folder
	folder="$(realpath -e "$1")" && [[ -d $folder ]] || fail "--share names \"$1\", which is no folder"
	# The node has another /run and another /var than the host. The path becomes part of a JSON string.
	[[ $folder != /run/* && $folder != /var/* && $folder =~ ^[a-zA-Z0-9/._+-]+$ ]] ||
		fail "--share names \"$folder\", expected a path outside of /run and /var, of letters, digits and /._+-"
	printf '%s' "$folder"
}

# shared_folder prints the folder that the containers of the running cluster have at /shared, or nothing.
shared_folder() {
	if [[ -e $state/etc/shared ]]; then
		cat "$state/etc/shared"
	fi
}

write_containerd_configuration() {
	local specification=
	if [[ -n $1 ]]; then
		specification='base_runtime_spec = "/run/cluster/state/etc/container.json"'
	fi
	# The plugin "opt" would make a folder on the host. AppArmor profiles would stay in the kernel. NRI would run
	# plugins of the host. The lower bound of oom_score_adj is for machines on which root lacks CAP_SYS_RESOURCE.
	cat <<EOT
version = 4
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs"]

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "$pause_image"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "/run/cluster/state/etc/cni"

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
$specification

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
EOT
}

# Each pod has its own link to the node (ptp) instead of a bridge, so that iptables of the node sees all traffic between
# pods. Services then need no bridge netfilter module, and a test can drop packets in FORWARD.
write_cni_configuration() {
	cat <<EOT
{
  "cniVersion": "0.4.0",
  "name": "cluster",
  "plugins": [
    {
      "type": "ptp",
      "mtu": 1500,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam",
        "ranges": [[{"subnet": "$pod_range"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
EOT
}

# Eviction and image collection are off, because a full disk of the machine must not end the pods of a test.
write_kubelet_configuration() {
	cat <<EOT
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_address
healthzBindAddress: 127.0.0.1
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /run/cluster/state/pki/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: /run/cluster/state/pki/kubelet-server.crt
tlsPrivateKeyFile: /run/cluster/state/pki/kubelet-server.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volume-plugins
podLogsDir: /var/log/pods
resolvConf: /run/cluster/state/etc/resolv.conf
clusterDomain: cluster.local
clusterDNS: [$dns_service_address]
cgroupDriver: cgroupfs
cgroupRoot: /$cgroup
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 0%
  nodefs.available: 0%
  nodefs.inodesFree: 0%
  imagefs.available: 0%
  imagefs.inodesFree: 0%
maxPods: 110
oomScoreAdj: 0
EOT
}

write_proxy_configuration() {
	cat <<EOT
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: $cluster
clusterCIDR: $pod_range
clientConnection: {kubeconfig: /run/cluster/state/pki/proxy.kubeconfig}
conntrack: {maxPerCore: 0}
oomScoreAdj: 0
EOT
}

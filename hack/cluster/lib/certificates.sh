# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Makes the certificates of the cluster at each start: ECDSA P-256 keys, valid for a year.

make_certificates() {
	pki="$state/pki"
	mkdir -m 0700 "$pki"
	(
		umask 077
		make_authority ca
		make_authority front-proxy-ca
		quiet_openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$pki/service-account.key"
		quiet_openssl pkey -in "$pki/service-account.key" -pubout -out "$pki/service-account.pub"
		sign ca apiserver /CN=kube-apiserver serverAuth \
			"DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,IP:$node_address,IP:$kubernetes_service_address"
		sign ca kubelet-server "/O=system:nodes/CN=system:node:$cluster" serverAuth "DNS:$cluster,IP:$node_address"
		sign ca apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
		sign ca admin /O=system:masters/CN=admin clientAuth
		sign ca kubelet "/O=system:nodes/CN=system:node:$cluster" clientAuth
		sign ca controller-manager /CN=system:kube-controller-manager clientAuth
		sign ca scheduler /CN=system:kube-scheduler clientAuth
		sign ca proxy /CN=system:kube-proxy clientAuth
		sign front-proxy-ca front-proxy-client /CN=front-proxy-client clientAuth
		write_kubeconfig admin "$kubeconfig"
		local each
		for each in kubelet controller-manager scheduler proxy; do
			write_kubeconfig "$each" "$pki/$each.kubeconfig"
		done
	)
}

quiet_openssl() {
	openssl "$@" >>"$state/log/openssl.log" 2>&1 ||
		fail "openssl $1 failed; what it said is in $state/log/openssl.log"
}

# make_authority NAME makes a certificate authority: NAME.key and NAME.crt.
make_authority() {
	quiet_openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$cluster-$1" \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,digitalSignature,keyCertSign,cRLSign \
		-keyout "$pki/$1.key" -out "$pki/$1.crt"
}

# sign AUTHORITY NAME SUBJECT USAGE [ALTERNATIVE-NAMES] makes a key, and a certificate that the authority signs:
# NAME.key and NAME.crt.
sign() {
	local authority="$1" name="$2" subject="$3" usage="$4" alternatives="${5:-}"
	{
		echo "basicConstraints=critical,CA:FALSE"
		echo "keyUsage=critical,digitalSignature"
		echo "extendedKeyUsage=$usage"
		[[ -z $alternatives ]] || echo "subjectAltName=$alternatives"
	} >"$pki/$name.extensions"
	quiet_openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
		-keyout "$pki/$name.key" -out "$pki/$name.request"
	quiet_openssl x509 -req -in "$pki/$name.request" -CA "$pki/$authority.crt" -CAkey "$pki/$authority.key" -days 365 \
		-extfile "$pki/$name.extensions" -out "$pki/$name.crt"
	rm "$pki/$name.extensions" "$pki/$name.request"
}

# write_kubeconfig NAME FILE writes a kubeconfig that contains the key, so that it works from each folder.
write_kubeconfig() {
	cat >"$2" <<EOT
apiVersion: v1
kind: Config
clusters:
- name: $cluster
  cluster:
    server: https://$node_address:6443
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$pki/$1.crt")
    client-key-data: $(base64 -w0 "$pki/$1.key")
contexts:
- name: $cluster
  context:
    cluster: $cluster
    user: $1
current-context: $cluster
EOT
}

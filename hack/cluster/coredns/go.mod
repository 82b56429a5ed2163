module github.com/crypto-broker/crypto-broker-operator/hack/cluster/coredns

go 1.26.0

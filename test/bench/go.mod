module github.com/crypto-broker/crypto-broker-operator/test/bench

go 1.26.0

require (
	github.com/crypto-broker/crypto-broker-operator v0.0.0
	github.com/crypto-broker/crypto-broker-operator/clients/go v0.0.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	filippo.io/mldsa v1.0.0 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/smallstep/pkcs7 v0.2.3 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
)

replace (
	github.com/crypto-broker/crypto-broker-operator => ../..
	github.com/crypto-broker/crypto-broker-operator/clients/go => ../../clients/go
)

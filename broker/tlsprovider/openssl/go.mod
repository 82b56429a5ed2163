module github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider/openssl

go 1.26.0

require (
	github.com/crypto-broker/crypto-broker-operator v0.0.0
	github.com/crypto-broker/crypto-broker-operator/clients/openssl v0.0.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/crypto-broker/crypto-broker-operator => ../../..
	github.com/crypto-broker/crypto-broker-operator/clients/openssl => ../../../clients/openssl
)

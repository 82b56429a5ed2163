module github.com/crypto-broker/crypto-broker-operator/test/conformance

go 1.26.4

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/c2sp/wycheproof v0.0.0-20260902155932-3fa63dd0344a
	github.com/cloudflare/circl v1.6.5
	github.com/crypto-broker/crypto-broker-operator v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/tink-crypto/tink-go/v2 v2.9.0
	github.com/zmap/zcrypto v0.0.0-20250324021606-4f0ea0eaccac
	github.com/zmap/zlint/v3 v3.6.6
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/sync v0.24.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	filippo.io/mldsa v1.0.0 // indirect
	github.com/pelletier/go-toml v1.9.5 // indirect
	github.com/smallstep/pkcs7 v0.2.3 // indirect
	github.com/weppos/publicsuffix-go v0.40.3-0.20250311103038-7794c8c0723b // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
)

replace github.com/crypto-broker/crypto-broker-operator => ../..

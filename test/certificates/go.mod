module github.com/crypto-broker/crypto-broker-operator/test/certificates

go 1.26.0

require (
	github.com/crypto-broker/crypto-broker-operator v0.0.0
	github.com/zmap/zcrypto v0.0.0-20250324021606-4f0ea0eaccac
	github.com/zmap/zlint/v3 v3.6.6
)

require (
	filippo.io/mldsa v1.0.0 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/pelletier/go-toml v1.9.5 // indirect
	github.com/smallstep/pkcs7 v0.2.3 // indirect
	github.com/weppos/publicsuffix-go v0.40.3-0.20250311103038-7794c8c0723b // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace github.com/crypto-broker/crypto-broker-operator => ../..

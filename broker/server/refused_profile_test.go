// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func TestACallToAProfileOfTheFileThatWasRefusedLearnsWhy(t *testing.T) {
	const file = sha256Profile + `
- Name: Broken
  API: {HashData: {HashAlg: md5}}
- Name: Later
  API:
    SignData: {SigningMode: post-quantum, SignAlg: ml-dsa-65}
- Name: For some
  API: {HashData: {HashAlg: md5}}
  Callers: {UIDs: [1]}
`
	b := start(t, "")
	set, _ := profile.Compile(profile.FileName, []byte(file), profile.RequireFIPS())
	b.Use(set, 0)
	conn := connect(t, b.socket(""))
	hash := func(name string) message { return message{}.text(requestProfile, name).text(requestInput, "abc") }
	for sentence, test := range map[string]struct {
		method string
		call   message
		code   codes.Code
		want   string
	}{
		"an invalid profile": {
			methodHashDataV1, hash("Broken"), codes.FailedPrecondition,
			`HashData with profile "Broken": the profile is in the file, but the broker refused it when it loaded the file: line 5, API.HashData.HashAlg unknown value "md5", expected one of "sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "sha3-512", "shake-128" or "shake-256"`,
		},
		"a profile with nothing that FIPS 140-3 approves": {
			methodSignData, message{}.text(signProfile, "Later").bytes(signKey, one(byID("k"))).text(signInput, "text"), codes.FailedPrecondition,
			`SignData with profile "Later": the profile is in the file, but the broker refused it when it loaded the file: line 7, API has no operation that FIPS 140-3 approves, expected at least one, because this broker serves no others (SignData: SignAlg has ml-dsa-65, which the validated module does not have; VerifyData: SignAlg has ml-dsa-65, which the validated module does not have)`,
		},
		"a profile that is not for everybody": {
			methodHashDataV1, hash("For some"), codes.FailedPrecondition,
			`HashData with profile "For some": the profile is in the file, but the broker refused it when it loaded the file; the broker's log says why`,
		},
		"a profile that the file does not have": {
			methodHashDataV1, hash("Unknown"), codes.InvalidArgument, `HashData with profile "Unknown": no profile of this name is served`,
		},
	} {
		t.Run(sentence, func(t *testing.T) { refuses(t, conn, test.method, test.call, test.code, test.want) })
	}
	b.use(t, sha256Profile+"- Name: Broken\n  API: {HashData: {HashAlg: sha-512}}\n")
	ask(t, conn, methodHashDataV1, hash("Broken"))
}

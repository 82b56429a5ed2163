// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const refusingProfiles = sha256Profile + `
- Name: No hash
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}}
- Name: Others
  API: {HashData: {HashAlg: sha-256}}
  Callers: {Containers: [side]}
- Name: Nobody
  API: {HashData: {HashAlg: sha-256}}
  Callers: {UIDs: [4294967294]}
- Name: Audited
  API: {HashData: {HashAlg: sha-256}}
  Audit: {Level: all, Required: true}
`

func TestARequestThatIsRefusedLearnsWhy(t *testing.T) {
	const mebibyte = 1 << 20
	of := func(profile string) message { return message{}.text(requestProfile, profile).text(requestInput, "abc") }
	b := start(t, refusingProfiles, "app")
	conn := connect(t, b.socket("app"))
	for sentence, test := range map[string]struct {
		request message
		code    codes.Code
		want    string // %s is the operation
	}{
		"no profile":                        {message{}.text(requestInput, "abc"), codes.InvalidArgument, "HashData: profile is empty, expected the name of a profile"},
		"an unknown profile":                {of("Q"), codes.InvalidArgument, `HashData with profile "Q": no profile of this name is served`},
		"a profile in other case":           {of("p"), codes.InvalidArgument, `HashData with profile "p": no profile of this name is served; did you mean "P"?`},
		"a profile of others in other case": {of("others"), codes.InvalidArgument, `HashData with profile "others": no profile of this name is served`},
		"a profile at the limit":            {of(strings.Repeat("n", 64)), codes.InvalidArgument, `HashData with profile "` + strings.Repeat("n", 64) + `": no profile of this name is served`},
		"a profile above the limit":         {of(strings.Repeat("n", 65)), codes.InvalidArgument, "HashData: profile has 65 bytes, expected at most 64"},
		"a profile without this operation":  {of("No hash"), codes.FailedPrecondition, `HashData with profile "No hash": the profile does not offer this operation`},
		"a profile of other containers":     {of("Others"), codes.PermissionDenied, fmt.Sprintf(`HashData with profile "Others": the profile does not allow container "app", user %d, group %d`, uid, gid)},
		"a profile of other users":          {of("Nobody"), codes.PermissionDenied, fmt.Sprintf(`HashData with profile "Nobody": the profile does not allow container "app", user %d, group %d`, uid, gid)},
		"a profile that must be audited":    {of("Audited"), codes.FailedPrecondition, `HashData with profile "Audited": the profile requires an audit record of each call, which this broker does not write`},
		"an input above the limit":          {message{}.text(requestProfile, "P").bytes(requestInput, make([]byte, mebibyte+1)), codes.InvalidArgument, "HashData: input has 1048577 bytes, expected at most 1048576"},
		"an input far above the limit":      {message{}.text(requestProfile, "P").bytes(requestInput, make([]byte, 4*mebibyte-100)), codes.InvalidArgument, "HashData: a message has 4194212 bytes, expected at most 2097152"},
		"an id above the limit":             {of("P").bytes(requestMetadata, message{}.text(metadataID, strings.Repeat("i", 129))), codes.InvalidArgument, "HashData: metadata.id has 129 bytes, expected at most 128"},
		"an id with a line break":           {of("P").bytes(requestMetadata, message{}.text(metadataID, "a\nb")), codes.InvalidArgument, "HashData: metadata.id has the byte 0x0a, expected printable ASCII only"},
		"an id that is not ASCII":           {of("P").bytes(requestMetadata, message{}.text(metadataID, "ü")), codes.InvalidArgument, "HashData: metadata.id has the byte 0xc3, expected printable ASCII only"},
		"a correlation id above the limit":  {of("P").bytes(requestMetadata, message{}.bytes(metadataTrace, message{}.text(traceCorrelationID, strings.Repeat("c", 129)))), codes.InvalidArgument, "HashData: metadata.traceContext.correlationId has 129 bytes, expected at most 128"},
		"metadata above the limit":          {of("P").bytes(requestMetadata, message{}.bytes(77, make([]byte, mebibyte))), codes.InvalidArgument, "HashData: metadata has 1048585 bytes, expected at most 1048576"},
		"a profile that is not UTF-8":       {of("\xff"), codes.InvalidArgument, "HashData: the request is not a "},
		"a field of another type":           {message{}.number(requestProfile, 1).number(requestInput, 1), codes.InvalidArgument, "HashData: profile is empty, expected the name of a profile"},
		"bytes that are no message":         {message{0xff, 0xff, 0xff}, codes.InvalidArgument, "HashData: the request is not a "},
		"metadata that is no message":       {of("P").text(requestMetadata, "\xff\xff"), codes.InvalidArgument, "HashData: the request is not a "},
		"a message that ends in the middle": {of("P")[:7], codes.InvalidArgument, "HashData: the request is not a "},
	} {
		for _, method := range []string{methodHash, methodHashData, methodHashDataV1} {
			t.Run(sentence+" "+method, func(t *testing.T) {
				want := saidOf(method, test.want)
				_, err := call(t, conn, method, test.request)
				got := status.Convert(err)
				if got.Code() != test.code || !strings.HasPrefix(got.Message(), want) {
					t.Errorf("got %s %q, want %s %q", got.Code(), got.Message(), test.code, want)
				}
			})
		}
	}
}

// saidOf returns a message about an operation as a method writes it. Methods of the first releases have other names for two
// operations than profiles and metrics.
func saidOf(method, sentence string) string {
	switch method {
	case methodHash:
		return strings.Replace(sentence, "HashData", "HashData (called as Hash)", 1)
	case methodSign:
		return strings.Replace(sentence, "SignCertificate", "SignCertificate (called as Sign)", 1)
	}
	return sentence
}

func TestMetricsHaveOneNameForAnOperation(t *testing.T) {
	b := start(t, sha256Profile)
	conn := connect(t, b.socket(""))
	for _, method := range []string{methodHash, methodHashData, methodHashDataV1} {
		ask(t, conn, method, request(nil))
		refuses(t, conn, method, message{}.text(requestProfile, "Q"), codes.InvalidArgument, saidOf(method, `HashData with profile "Q": no profile of this name is served`))
	}
	refuses(t, conn, methodSign, message{}.text(certProfile, "P"), codes.FailedPrecondition, `SignCertificate (called as Sign) with profile "P": the profile does not offer this operation`)
	awaitMetrics(t, b,
		`crypto_broker_requests_total{code="OK",operation="HashData",profile="P"} 3`,
		`crypto_broker_requests_total{code="InvalidArgument",operation="HashData",profile="unknown"} 3`,
		`crypto_broker_requests_total{code="FailedPrecondition",operation="SignCertificate",profile="P"} 1`)
}

func TestAContainerCannotBeToldWhereAllShareOneSocket(t *testing.T) {
	conn := connect(t, start(t, refusingProfiles).socket(""))
	refuses(t, conn, methodHashData, message{}.text(requestProfile, "Others"), codes.PermissionDenied,
		fmt.Sprintf(`HashData with profile "Others": the profile does not allow an unknown container, because this broker has one socket for all callers (see --callers), user %d, group %d`, uid, gid))
}

func TestAFormatThatDoesNotExistIsRefused(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	for method, want := range map[string]string{
		methodHashData:   "HashData: outputFormat is 7, expected 0 (hex) or 1 (raw)",
		methodHashDataV1: "HashData: outputFormat is 7, expected 0 or 1 (hex) or 2 (raw)",
	} {
		_, err := call(t, conn, method, request(nil).number(requestFormat, 7))
		if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != want {
			t.Errorf("%s: got %v, want %q", method, got, want)
		}
	}
}

func TestSizesAtTheLimitsAreServed(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	longest := strings.Repeat("~", 128)
	metadata := message{}.text(metadataID, longest).bytes(metadataTrace, message{}.text(traceCorrelationID, longest))
	for _, method := range []string{methodHash, methodHashData, methodHashDataV1} {
		m := message{}.text(requestProfile, "P").bytes(requestInput, make([]byte, 1<<20)).bytes(requestMetadata, metadata)
		if _, err := call(t, conn, method, m); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestAMethodThatIsNotServedIsUnimplemented(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	for _, method := range []string{"/CryptoBroker.CryptoGrpc/Teleport", "/CryptoBroker.CryptoGrpcDev/FakeEndpoint", "/other.Service/HashData"} {
		if _, err := call(t, conn, method, nil); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: got %v, want Unimplemented", method, err)
		}
	}
}

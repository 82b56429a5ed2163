// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/x509"
	"math"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

func TestThePeriodOfACertificate(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 999_999_999, time.UTC)
	at := func(text string) *uint64 {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		seconds := uint64(parsed.Unix())
		return &seconds
	}
	number := func(n uint64) *uint64 { return &n }
	// The profile allows an hour back and a year ahead.
	const earliest, latest = "2026-05-01T11:00:00Z", "2027-05-01T12:00:00Z"
	const window = earliest + " to " + latest
	for sentence, c := range map[string]struct {
		// issuer is the period of the issuer's certificate. If it is empty, the period is long enough.
		issuer              [2]string
		notBefore, notAfter *uint64
		want                [2]string
		refusal             string
	}{
		"is the profile's without a requested time":   {want: [2]string{earliest, latest}},
		"is the one asked for":                        {notBefore: at("2026-06-01T00:00:00Z"), notAfter: at("2026-07-01T00:00:00Z"), want: [2]string{"2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z"}},
		"may begin and end at the profile's ends":     {notBefore: at(earliest), notAfter: at(latest), want: [2]string{earliest, latest}},
		"may begin when asked and end by default":     {notBefore: at("2026-06-01T00:00:00Z"), want: [2]string{"2026-06-01T00:00:00Z", latest}},
		"may end when asked and begin by default":     {notAfter: at("2026-06-01T00:00:00Z"), want: [2]string{earliest, "2026-06-01T00:00:00Z"}},
		"may be a second":                             {notBefore: at(latest), notAfter: at(latest), want: [2]string{latest, latest}},
		"by default begins no earlier than issuer's":  {issuer: [2]string{"2026-05-01T11:59:58Z", "2036-01-01T00:00:00Z"}, want: [2]string{"2026-05-01T11:59:58Z", latest}},
		"by default ends no later than the issuer's":  {issuer: [2]string{"2020-01-01T00:00:00Z", "2026-08-01T00:00:00Z"}, want: [2]string{earliest, "2026-08-01T00:00:00Z"}},
		"may end with the issuer's when asked to":     {issuer: [2]string{"2020-01-01T00:00:00Z", "2026-08-01T00:00:00Z"}, notAfter: at("2026-08-01T00:00:00Z"), want: [2]string{earliest, "2026-08-01T00:00:00Z"}},
		"may lie ahead under an issuer who lies, too": {issuer: [2]string{"2026-06-01T00:00:00Z", "2036-01-01T00:00:00Z"}, want: [2]string{"2026-06-01T00:00:00Z", latest}},

		"is refused a second before the profile's": {notBefore: at("2026-05-01T10:59:59Z"), refusal: "validNotBefore is 2026-05-01T10:59:59Z, expected a time that the profile allows, " + window},
		"is refused a second after the profile's":  {notAfter: at("2027-05-01T12:00:01Z"), refusal: "validNotAfter is 2027-05-01T12:00:01Z, expected a time that the profile allows, " + window},
		"is refused if it begins after the end":    {notBefore: at("2027-05-01T12:00:01Z"), refusal: "validNotBefore is 2027-05-01T12:00:01Z, expected a time that the profile allows, " + window},
		"is refused if it ended before it begins":  {notAfter: at("2026-05-01T10:00:00Z"), refusal: "validNotAfter is 2026-05-01T10:00:00Z, expected a time that the profile allows, " + window},
		"is refused if both are the wrong way":     {notBefore: at("2026-07-01T00:00:00Z"), notAfter: at("2026-06-01T00:00:00Z"), refusal: "validNotAfter makes the certificate end at 2026-06-01T00:00:00Z, before it begins at 2026-07-01T00:00:00Z"},
		"is refused before the issuer's": {issuer: [2]string{"2026-06-01T00:00:00Z", "2036-01-01T00:00:00Z"}, notBefore: at("2026-05-31T23:59:59Z"),
			refusal: "validNotBefore is 2026-05-31T23:59:59Z, expected a time when the issuer's certificate is valid, 2026-06-01T00:00:00Z to 2036-01-01T00:00:00Z"},
		"is refused after the issuer's": {issuer: [2]string{"2020-01-01T00:00:00Z", "2026-08-01T00:00:00Z"}, notAfter: at("2026-08-01T00:00:01Z"),
			refusal: "validNotAfter is 2026-08-01T00:00:01Z, expected a time when the issuer's certificate is valid, 2020-01-01T00:00:00Z to 2026-08-01T00:00:00Z"},
		"is refused under an issuer who begins too late": {issuer: [2]string{"2028-01-01T00:00:00Z", "2036-01-01T00:00:00Z"},
			refusal: "caCert is valid from 2028-01-01T00:00:00Z to 2036-01-01T00:00:00Z, expected a time that the profile allows, " + window},
		"is refused in milliseconds":                {notAfter: number(1_800_000_000_000), refusal: "validNotAfter is 1800000000000, expected seconds since 1970, at most 253402300799, the end of the year 9999"},
		"is refused at the largest number there is": {notBefore: number(math.MaxUint64), refusal: "validNotBefore is 18446744073709551615, expected seconds since 1970, at most 253402300799, the end of the year 9999"},
		"is refused in 1970":                        {notBefore: number(0), refusal: "validNotBefore is 1970-01-01T00:00:00Z, expected a time that the profile allows, " + window},
	} {
		t.Run(sentence, func(t *testing.T) {
			issuer := authority(t, "p-256", func(certificate *x509.Certificate) {
				begin, end := "2020-01-01T00:00:00Z", "2046-01-01T00:00:00Z"
				if c.issuer[0] != "" {
					begin, end = c.issuer[0], c.issuer[1]
				}
				certificate.NotBefore, certificate.NotAfter = time.Unix(int64(*at(begin)), 0), time.Unix(int64(*at(end)), 0)
			})
			der, err := engine.IssueCertificate(permissive(t), issuer, engine.CertificateRequest{CSR: csr(t, "p-256", nil), NotBefore: c.notBefore, NotAfter: c.notAfter}, now)
			if c.refusal != "" {
				if err == nil || err.Error() != c.refusal {
					t.Fatalf("error\n got %v\nwant %s", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			if got := [2]string{certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339)}; got != c.want {
				t.Errorf("from %s to %s, want %s to %s", got[0], got[1], c.want[0], c.want[1])
			}
		})
	}
}

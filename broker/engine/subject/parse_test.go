// SPDX-License-Identifier: Apache-2.0

package subject_test

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine/subject"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
)

// openSSL reads a name with an independent parser and prints it: components in the order of the DER, with the type of each string
// if wanted.
func openSSL(t *testing.T, der []byte, show string) string {
	t.Helper()
	// openssl prints a name only as a part of a larger object. A CRL needs no key, so the name becomes the issuer of an unsigned CRL.
	crl, err := asn1.Marshal(struct {
		List struct {
			Version   int
			Signature pkix.AlgorithmIdentifier
			Issuer    asn1.RawValue
			Update    asn1.RawValue
		}
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		List: struct {
			Version   int
			Signature pkix.AlgorithmIdentifier
			Issuer    asn1.RawValue
			Update    asn1.RawValue
		}{
			1, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 3, 101, 112}},
			asn1.RawValue{FullBytes: der},
			asn1.RawValue{Tag: asn1.TagUTCTime, Bytes: []byte("260101000000Z")},
		},
		Algorithm: pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 3, 101, 112}},
		Signature: asn1.BitString{Bytes: make([]byte, 64), BitLength: 512},
	})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "openssl", "crl", "-inform", "DER", "-noout", "-issuer", "-nameopt", show)
	command.Stdin = bytes.NewReader(crl)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl: %v\n%s", err, out)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "issuer="))
}

func TestASubjectIsReadAs(t *testing.T) {
	for sentence, c := range map[string]struct{ text, want string }{
		"one attribute":                                       {"CN=app", "CN=PRINTABLESTRING:app"},
		"the comma form in the order given":                   {"CN=x,O=y,C=DE", "CN=PRINTABLESTRING:x, O=PRINTABLESTRING:y, C=PRINTABLESTRING:DE"},
		"the comma form with spaces":                          {" CN = John Doe , OU=Clients, C= DE ", "CN=PRINTABLESTRING:John Doe, OU=PRINTABLESTRING:Clients, C=PRINTABLESTRING:DE"},
		"lines, as from a file":                               {"CN=a,\n  O=b\n", "CN=PRINTABLESTRING:a, O=PRINTABLESTRING:b"},
		"an attribute given twice":                            {"OU=b,OU=a,OU=b", "OU=PRINTABLESTRING:b, OU=PRINTABLESTRING:a, OU=PRINTABLESTRING:b"},
		"empty components, which released brokers skip":       {",CN=a,,O=b,", "CN=PRINTABLESTRING:a, O=PRINTABLESTRING:b"},
		"characters that PrintableString lacks":               {"CN=a_b@c", "CN=UTF8STRING:a_b@c"},
		"UTF-8":                                               {"CN=Jürgen", "CN=UTF8STRING:Jürgen"},
		"UTF-8 in escaped bytes (RFC 4514, section 4)":        {`SN=Lu\C4\8Di\C4\87`, "SN=UTF8STRING:Lučić"},
		"an escaped comma (RFC 4514, section 4)":              {`CN=James \"Jim\" Smith\, III,DC=example,DC=net`, `CN=UTF8STRING:James "Jim" Smith, III, DC=IA5STRING:example, DC=IA5STRING:net`},
		"several attributes of one component":                 {"OU=Sales+CN=J. Smith,DC=example", "OU=PRINTABLESTRING:Sales + CN=PRINTABLESTRING:J. Smith, DC=IA5STRING:example"},
		"an escaped plus sign before what looks as one":       {`CN=a\+OU=b`, "CN=PRINTABLESTRING:a+OU=b"},
		"a plus sign that no attribute follows":               {"CN=C++,O=Q+A", "CN=PRINTABLESTRING:C++, O=PRINTABLESTRING:Q+A"},
		"angle brackets and equals signs":                     {"CN=<a=b>", "CN=UTF8STRING:<a=b>"},
		"all special characters escaped":                      {`CN=\ \#\"\+\,\;\<\=\>\\\ `, `CN=UTF8STRING: #"+,;<=>\ `},
		"spaces at the ends that are escaped":                 {`CN=\  a \20 `, "CN=PRINTABLESTRING:  a  "},
		"a value in hexadecimal":                              {"CN=#0C0161,O=#130162", "CN=UTF8STRING:a, O=PRINTABLESTRING:b"},
		"a type by object identifier":                         {"2.5.4.3=a,0.9.2342.19200300.100.1.25=b,1.2.3.4=#0c0163", "CN=PRINTABLESTRING:a, DC=IA5STRING:b, 1.2.3.4=UTF8STRING:c"},
		"types in any case and with long names":               {"cn=a,Email=b@c,StateOrProvinceName=d,s=e", "CN=PRINTABLESTRING:a, emailAddress=IA5STRING:b@c, ST=PRINTABLESTRING:d, ST=PRINTABLESTRING:e"},
		"a hash sign that is not the first character":         {"CN=a#b", "CN=UTF8STRING:a#b"},
		"a value with hexadecimal digits after a hash escape": {`CN=\#0C0161`, "CN=UTF8STRING:#0C0161"},
	} {
		t.Run(sentence, func(t *testing.T) {
			der, err := subject.Parse(c.text)
			if err != nil {
				t.Fatalf("Parse(%q): %v", c.text, err)
			}
			got := openSSL(t, der, "show_type,sname,sep_comma_plus_space,utf8")
			if got != strings.TrimSpace(c.want) {
				t.Errorf("Parse(%q):\n got %s\nwant %s", c.text, got, c.want)
			}
		})
	}
}

func TestASubjectIsRefusedWith(t *testing.T) {
	for sentence, c := range map[string]struct{ text, want string }{
		"no text":                                 {"", `names nothing, expected attributes such as "CN=api.example.com,O=Example"`},
		"only commas":                             {" , ,", `names nothing, expected attributes such as "CN=api.example.com,O=Example"`},
		"no attribute":                            {"app", `component 1 has no "=", expected an attribute such as "CN=api.example.com"; a comma inside a value is written "\,"`},
		"a comma in a value":                      {"O=Example, Inc.,C=DE", `component 2 has no "=", expected an attribute such as "CN=api.example.com"; a comma inside a value is written "\,"`},
		"an unknown type":                         {"CN=a,XY=b", `unknown attribute type "XY", expected CN, O, OU, C, ST, L or another of RFC 4519, or a dotted object identifier`},
		"a private key by mistake":                {"-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg=", "an attribute type that is neither a name nor an object identifier, expected one such as \"CN=\""},
		"no type":                                 {"=a", `an attribute without a type, expected one such as "CN="`},
		"a wrong object identifier":               {"2.5.04.3=a", `attribute type "2.5.04.3" is not an object identifier, expected one such as 2.5.4.3`},
		"an object identifier out of range":       {"1.40.1=a", `attribute type "1.40.1" is not an object identifier, expected one such as 2.5.4.3`},
		"a number that no reader takes":           {"2.2147483647=a", `attribute type "2.2147483647" is not an object identifier, expected one such as 2.5.4.3`},
		"an empty value":                          {"CN=,O=b", "CN has no value"},
		"a value of spaces":                       {"CN=  ", "CN has no value"},
		"quotation marks":                         {`O="Example, Inc."`, `the value of O has an unescaped quotation mark, expected "\""; values are not quoted, a comma inside one is written "\,"`},
		"semicolons as separators":                {"CN=a;O=b", `the value of CN has an unescaped semicolon, expected a comma between attributes, or "\;" for the character`},
		"a backslash at the end":                  {`CN=a\`, `the value of CN has a backslash that escapes nothing, expected a special character or two hexadecimal digits after it, or "\\" for the character`},
		"a backslash before a letter":             {`CN=\x`, `the value of CN has a backslash that escapes nothing, expected a special character or two hexadecimal digits after it, or "\\" for the character`},
		"a NUL":                                   {`CN=good.example\00.evil.example`, "the value of CN has a control character"},
		"a newline in the middle":                 {"CN=a\nb", "the value of CN has a control character"},
		"bytes that are no UTF-8":                 {`CN=\FF`, "the value of CN is not UTF-8"},
		"a country of more than two letters":      {"C=Germany", "the value of C has 7 characters, expected 2"},
		"a country in another script":             {"C=ДЕ", `the value of C has a character that the attribute cannot have, expected only letters, digits, spaces and '()+,-./:=? of ASCII`},
		"a domain component outside of ASCII":     {"DC=münchen", `the value of DC has a character that the attribute cannot have, expected only characters of ASCII`},
		"the same attribute twice in a component": {"CN=a+CN=a", "one component has the attribute 2.5.4.3 twice with the same value"},
		"hexadecimal that is none":                {"CN=#1 fan", `the value of CN begins with "#", expected pairs of hexadecimal digits after it, or "\#" for the character`},
		"hexadecimal without a value":             {"CN=#", "the value of CN is in hexadecimal, expected the DER of one UTF8String, PrintableString or IA5String"},
		"hexadecimal of two values":               {"CN=#0C01610C0162", "the value of CN is in hexadecimal, expected the DER of one UTF8String, PrintableString or IA5String"},
		"hexadecimal that is cut":                 {"CN=#0C05616", `the value of CN begins with "#", expected pairs of hexadecimal digits after it, or "\#" for the character`},
		"hexadecimal of a number":                 {"CN=#020101", "the value of CN is in hexadecimal and of another type than the attribute's, expected the DER of one UTF8String, PrintableString or IA5String as the attribute needs it"},
		"hexadecimal of another string type":      {"C=#0C024445", "the value of C is in hexadecimal and of another type than the attribute's, expected the DER of one UTF8String, PrintableString or IA5String as the attribute needs it"},
		"a NUL in hexadecimal":                    {"CN=#0C03610062", "the value of CN has a control character"},
		"an attribute after a plus sign unknown":  {"CN=a+b=c", `unknown attribute type "b", expected CN, O, OU, C, ST, L or another of RFC 4519, or a dotted object identifier`},
	} {
		t.Run(sentence, func(t *testing.T) {
			der, err := subject.Parse(c.text)
			if err == nil {
				t.Fatalf("Parse(%q) = %x, want the error %q", c.text, der, c.want)
			}
			if err.Error() != c.want {
				t.Errorf("Parse(%q):\n got %s\nwant %s", c.text, err, c.want)
			}
		})
	}
}

// FuzzParse checks that other parsers of DER can read each accepted name, and that the name has the same meaning when it is written
// in the strictest form: types by object identifier, every value in hexadecimal or every byte escaped.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "CN=x,O=y,C=DE", ` CN=a\, b + OU=c ,`, "CN=#0C0161", "2.5.4.3=foo", `CN=\C4\8D`, "CN=C++", `O="a"`, "CN=a;O=b", `CN=\ a\ `, "1.2.3=#1601ff", "E=a@b,DC=c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var der []byte
		var err error
		fuzzmemory.Check(t, len(text), fuzzmemory.PerByte, func() { der, err = subject.Parse(text) })
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("Parse(%q): message of more than a line: %q", text, err)
			}
			return
		}
		var name pkix.RDNSequence
		if rest, err := asn1.Unmarshal(der, &name); err != nil || len(rest) > 0 || len(name) == 0 {
			t.Fatalf("Parse(%q) = %x, which is no name: %v", text, der, err)
		}
		var values []pkixSET
		if _, err := asn1.Unmarshal(der, &values); err != nil {
			t.Fatal(err)
		}
		inHex := make([]string, len(values))
		for i, set := range values {
			attributes := make([]string, len(set))
			for j, a := range set {
				attributes[j] = fmt.Sprintf("%s=#%s", a.Type, hex.EncodeToString(a.Value.FullBytes))
			}
			inHex[i] = strings.Join(attributes, "+")
		}
		again, err := subject.Parse(strings.Join(inHex, ","))
		if err != nil || !bytes.Equal(again, der) {
			t.Errorf("Parse(%q) = %x, but written as %s it is %x, %v", text, der, strings.Join(inHex, ","), again, err)
		}
	})
}

type pkixSET []struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

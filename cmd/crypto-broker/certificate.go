// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

var _ = operation(newSignCertificate)

func newSignCertificate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign-certificate --csr FILE [--caCert FILE --caKey FILE]",
		Short: "Issue a certificate by the rules of a profile",
		Long: `Issues a certificate for a certificate request (PKCS #10) by the rules of a
profile. Where the profile names the issuer's key, neither --caCert nor --caKey
is needed. One of the files may be - for standard input.`,
		Example: `  crypto-broker sign-certificate --csr app.csr --caCert ca.crt --caKey ca.key
  crypto-broker sign-certificate --profile Issuing --csr app.csr --output text > app.crt`,
		Args: commandline.Arguments(0, 0, "none"),
	}
	profile := profileFlag(cmd)
	csr := cmd.Flags().String("csr", "", "file with the certificate request in PEM")
	caCert := cmd.Flags().String("caCert", "", "file with the issuer's certificate in PEM")
	caKey := cmd.Flags().String("caKey", "", "file with the issuer's private key in PEM")
	subject := cmd.Flags().String("subject", "", "subject of the certificate instead of the request's (RFC 4514)")
	notBefore := cmd.Flags().String("not-before", "", "begin of the certificate's validity (RFC 3339) (default as early as allowed)")
	notAfter := cmd.Flags().String("not-after", "", "end of the certificate's validity (RFC 3339) (default as late as allowed)")
	points := cmd.Flags().StringArray("crl-distribution-point", nil, "URL of a revocation list; may be given several times")
	encoding := commandline.ChoiceFlag(cmd, "encoding", "", "how the certificate is written: pem or der (base64 in JSON)", "pem", "der")
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		request := &v1.SignCertificateRequest{Profile: *profile, CrlDistributionPoints: *points, OutputFormat: v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_PEM}
		if encoding.Value == "der" {
			request.OutputFormat = v1.SignOutputFormat_SIGN_OUTPUT_FORMAT_DER
		}
		if *csr == "" {
			return program.Usagef("no certificate request is named, expected --csr FILE")
		}
		if *subject != "" {
			request.Subject = subject
		}
		in := &inputs{cmd: cmd}
		for _, file := range []struct {
			what, path string
			to         *string
		}{
			{"the certificate request", *csr, &request.Csr},
			{"the issuer's certificate", *caCert, &request.CaCert},
			{"the issuer's key", *caKey, &request.CaPrivateKey},
		} {
			if file.path == "" {
				continue
			}
			content, err := in.read(file.what, file.path, maxKeyFile)
			if err != nil {
				return err
			}
			*file.to = string(content)
		}
		var err error
		if request.ValidNotBefore, err = moment(cmd, "not-before", *notBefore); err != nil {
			return err
		}
		if request.ValidNotAfter, err = moment(cmd, "not-after", *notAfter); err != nil {
			return err
		}
		return c.run(fmt.Sprintf("Signing certificate using %s profile", *profile), nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).SignCertificate(ctx, request)
			if err != nil {
				return nil, err
			}
			return c.certified(reply), nil
		})
	}
	return cmd
}

// moment returns the time of a flag, in seconds since 1970, or nil if the flag is not given.
func moment(cmd *cobra.Command, flag, text string) (*uint64, error) {
	if !cmd.Flags().Changed(flag) {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Unix() < 0 {
		return nil, program.Usagef("--%s is %q, expected a time after 1970 like 2027-01-31T12:00:00Z", flag, text)
	}
	seconds := uint64(t.Unix())
	return &seconds, nil
}

// certified returns the result of a call that signs a certificate.
func (c *caller) certified(reply *v1.SignCertificateResponse) *result {
	type response struct {
		SignedCertificate map[string]string    `json:"SignedCertificate"`
		Descriptor        *v1.CryptoDescriptor `json:"descriptor"`
	}
	r := &result{message: "Sign certificate response", took: "Certificate Signing", text: []byte(reply.GetPem())}
	value, released := field{"pem", reply.GetPem()}, map[string]string{"Pem": reply.GetPem()}
	if der := reply.GetDer(); der != nil {
		encoded := base64.StdEncoding.EncodeToString(der)
		r.text, value, released = der, field{"der", encoded}, map[string]string{"Der": encoded}
	}
	r.response = response{released, reply.GetDescriptor_()}
	r.fields = append([]field{value, {"descriptor", reply.GetDescriptor_()}}, c.warning(reply.GetMetadata())...)
	return r
}

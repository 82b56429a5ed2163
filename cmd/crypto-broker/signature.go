// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// signatureFormats are the formats of signatures, by the values of the flag.
var signatureFormats = map[string]v1.SignatureFormat{
	"raw": v1.SignatureFormat_SIGNATURE_FORMAT_RAW, "der": v1.SignatureFormat_SIGNATURE_FORMAT_DER,
	"pem": v1.SignatureFormat_SIGNATURE_FORMAT_PEM, "cms": v1.SignatureFormat_SIGNATURE_FORMAT_CMS,
}

func signatureFormatFlag(cmd *cobra.Command) *commandline.Choice {
	return commandline.ChoiceFlag(cmd, "signature-format", "", "how the signature is written: raw, der, pem or cms", "raw", "der", "pem", "cms")
}

var _ = operation(newSignData)

func newSignData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign-data [INPUT|-]",
		Short: "Sign data by the algorithm of a profile",
		Long: `Signs the argument, standard input (-) or a file, at most 1 MiB, by the algorithm
of a profile. The signature is printed in hexadecimal digits.`,
		Example: `  crypto-broker sign-data "We agree." --profile Contracts --keyId contracts
  crypto-broker sign-data --file contract.txt --key key.pem --signature-format der`,
		Args:              commandline.Arguments(0, 1, dataArgument("what to sign")),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, file, key := profileFlag(cmd), dataFlag(cmd, "what to sign"), signingKeyFlags(cmd, "the private key")
	format := signatureFormatFlag(cmd)
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := &inputs{cmd: cmd}
		request := &v1.SignDataRequest{Profile: *profile, SignatureFormat: signatureFormats[format.Value]}
		var err error
		if request.Input, err = in.data("what to sign", args, *file); err != nil {
			return err
		}
		if request.KeySource, err = key.source(in); err != nil {
			return err
		}
		return c.run("Signing data", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).SignData(ctx, request)
			if err != nil {
				return nil, err
			}
			signature := hex.EncodeToString(reply.GetSignature())
			return &result{
				message: "Sign data response",
				fields:  append([]field{{"signature", signature}, {"descriptor", reply.GetDescriptor_()}}, c.warning(reply.GetMetadata())...),
				text:    []byte(signature + "\n"),
			}, nil
		})
	}
	return cmd
}

// signedArguments checks that the arguments have a signature and the signed data.
func signedArguments(cmd *cobra.Command, args []string) error {
	const want = "what was signed and the signature; the first may be - for standard input, or --file in its place"
	switch file := cmd.Flags().Changed("file"); {
	case len(args) == 0:
		return program.Usagef("found no signature, expected %s", want)
	case len(args) == 1 && !file:
		return program.Usagef("found 1 argument, expected 2: %s", want)
	case len(args) == 2 && file:
		return program.Usagef("found 2 arguments and --file, expected only the signature with --file")
	case len(args) > 2:
		return program.Usagef("found %d arguments, expected 2: %s", len(args), want)
	case args[len(args)-1] == "":
		return program.Usagef("the signature is empty, expected its hexadecimal digits")
	}
	return nil
}

var _ = operation(newVerifyData)

func newVerifyData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify-data [INPUT|-] SIGNATURE",
		Short: "Check a signature of data",
		Long: `Checks whether a signature, in hexadecimal digits, is valid for the argument, for
standard input (-) or for a file. The exit code is 5 if it is not valid, and 3 if
it is no signature of this format at all.`,
		Example: `  crypto-broker verify-data "We agree." 3045… --profile Contracts --keyId contracts
  crypto-broker verify-data --file contract.txt 3045… --key public.pem --signature-format der`,
		Args:              signedArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, file, key := profileFlag(cmd), dataFlag(cmd, "what was signed"), signingKeyFlags(cmd, "the public key or the certificate")
	format := signatureFormatFlag(cmd)
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := &inputs{cmd: cmd}
		request := &v1.VerifyDataRequest{Profile: *profile, SignatureFormat: signatureFormats[format.Value]}
		last := len(args) - 1
		var err error
		if request.Input, err = in.data("what was signed", args[:last], *file); err != nil {
			return err
		}
		if request.Signature, err = digits("the signature", args[last]); err != nil {
			return err
		}
		if request.KeySource, err = key.source(in); err != nil {
			return err
		}
		return c.run("Verifying data", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).VerifyData(ctx, request)
			if err != nil {
				return nil, err
			}
			r := &result{
				message: "Verify data response",
				fields:  append([]field{{"valid", reply.GetValid()}}, c.warning(reply.GetMetadata())...),
				text:    []byte("valid\n"),
			}
			if !reply.GetValid() {
				r.text, r.verdict = []byte("not valid\n"), errNotValid
			}
			return r, nil
		})
	}
	return cmd
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

var _ = operation(newEncryptData)

func newEncryptData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encrypt-data [PLAINTEXT|-]",
		Short: "Encrypt data by the algorithm of a profile",
		Long: `Encrypts the argument, standard input (-) or a file, at most 1 MiB, by the
algorithm of a profile. The output is in hexadecimal digits.`,
		Example: `  crypto-broker encrypt-data "4711 boxes" --profile Orders --keyId orders
  crypto-broker encrypt-data --file order.txt --key-file key.hex --nonce 000102030405060708090a0b`,
		Args:              commandline.Arguments(0, 1, dataArgument("the plaintext")),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, file, key := profileFlag(cmd), dataFlag(cmd, "the plaintext"), secretKeyFlags(cmd)
	cmd.Flags().String("nonce", "", "nonce in hexadecimal digits; leave it out if the profile lets the broker make it")
	cmd.Flags().String("aad", "", "additional data that is authenticated, in hexadecimal digits")
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := &inputs{cmd: cmd}
		request := &v1.EncryptDataRequest{Profile: *profile, EncryptMetadata: &v1.EncryptMetadata{}}
		var err error
		if request.Plaintext, err = in.data("the plaintext", args, *file); err != nil {
			return err
		}
		if request.KeySource, err = key.source(in); err != nil {
			return err
		}
		if request.EncryptMetadata.Nonce, err = hexFlag(cmd, "nonce"); err != nil {
			return err
		}
		if cmd.Flags().Changed("aad") {
			if request.EncryptMetadata.Aad, err = hexFlag(cmd, "aad"); err != nil {
				return err
			}
		}
		return c.run("Encrypting data", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).EncryptData(ctx, request)
			if err != nil {
				return nil, err
			}
			return c.encrypted(reply), nil
		})
	}
	return cmd
}

// encrypted returns the result of an encryption.
func (c *caller) encrypted(reply *v1.EncryptDataResponse) *result {
	ciphertext, made := hex.EncodeToString(reply.GetCiphertext()), reply.GetCipherMetadata()
	nonce, tag := hex.EncodeToString(made.GetNonce()), hex.EncodeToString(made.GetTag())
	fields := []field{{"ciphertext", ciphertext}, {"tag", tag}, {"nonce", nonce}}
	if made.KeyId != nil {
		fields = append(fields, field{"keyId", made.GetKeyId()})
	}
	fields = append(fields, field{"descriptor", reply.GetDescriptor_()})
	return &result{
		message: "Encrypt data response",
		fields:  append(fields, c.warning(reply.GetMetadata())...),
		text:    fmt.Appendf(nil, "ciphertext %s\nnonce %s\ntag %s\n", ciphertext, nonce, tag),
	}
}

var _ = operation(newDecryptData)

func newDecryptData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decrypt-data [CIPHERTEXT|-]",
		Short: "Decrypt a ciphertext of encrypt-data, if it is authentic",
		Long: `Decrypts the argument, standard input (-) or a file, each in hexadecimal digits,
if none of them was changed. Plaintext that is not UTF-8 is printed in base64, as
plaintextBase64; --output text prints the bytes themselves.`,
		Example: `  crypto-broker decrypt-data 5ad1c9 --profile Orders --keyId orders --nonce 5f0c… --tag 9b1e…`,
		Args:    commandline.Arguments(0, 1, dataArgument("the ciphertext")), ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, file, key := profileFlag(cmd), dataFlag(cmd, "the ciphertext"), secretKeyFlags(cmd)
	cmd.Flags().String("nonce", "", "nonce of the encryption in hexadecimal digits")
	cmd.Flags().String("aad", "", "additional data of the encryption in hexadecimal digits")
	cmd.Flags().String("tag", "", "authentication tag of the encryption in hexadecimal digits")
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := &inputs{cmd: cmd}
		request := &v1.DecryptDataRequest{Profile: *profile, DecryptMetadata: &v1.DecryptMetadata{}}
		var err error
		if request.Ciphertext, err = in.hexData("the ciphertext", args, *file); err != nil {
			return err
		}
		if request.KeySource, err = key.source(in); err != nil {
			return err
		}
		for flag, to := range map[string]*[]byte{
			"nonce": &request.DecryptMetadata.Nonce, "aad": &request.DecryptMetadata.Aad, "tag": &request.DecryptMetadata.Tag,
		} {
			if !cmd.Flags().Changed(flag) {
				continue
			}
			if *to, err = hexFlag(cmd, flag); err != nil {
				return err
			}
		}
		return c.run("Decrypting data", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).DecryptData(ctx, request)
			if err != nil {
				return nil, err
			}
			value := field{"plaintext", string(reply.GetPlaintext())}
			if !utf8.Valid(reply.GetPlaintext()) {
				value = field{"plaintextBase64", reply.GetPlaintext()}
			}
			return &result{
				message: "Decrypt data response",
				fields:  append([]field{value}, c.warning(reply.GetMetadata())...),
				text:    reply.GetPlaintext(),
			}, nil
		})
	}
	return cmd
}

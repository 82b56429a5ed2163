// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

func wrappingKeyFlag(cmd *cobra.Command, what string) *string {
	return cmd.Flags().String("keyId", "", "id of "+what)
}

func contextFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("context", "", "context that the data key is bound to, such as the name of a tenant")
}

// wrappedArgument gives a command the argument with a wrapped key, and returns how to read it.
func wrappedArgument(cmd *cobra.Command) func(args []string) ([]byte, error) {
	cmd.Args, cmd.ValidArgsFunction = commandline.Arguments(0, 1, dataArgument("the wrapped key")), cobra.NoFileCompletions
	file := dataFlag(cmd, "the wrapped key in hexadecimal digits")
	return func(args []string) ([]byte, error) {
		return (&inputs{cmd: cmd}).hexData("the wrapped key", args, *file)
	}
}

// hexResult returns a result with fields of bytes, in hexadecimal digits. With --output text
// each is on a line, with its name if there are several.
func (c *caller) hexResult(message string, metadata *v1.Metadata, descriptor *v1.CryptoDescriptor, values ...field) *result {
	r := &result{message: message}
	for _, value := range values {
		digits := hex.EncodeToString(value.value.([]byte))
		r.fields = append(r.fields, field{value.name, digits})
		if len(values) > 1 {
			r.text = fmt.Appendf(r.text, "%s ", value.name)
		}
		r.text = fmt.Appendf(r.text, "%s\n", digits)
	}
	r.fields = append(r.fields, field{"descriptor", descriptor})
	r.fields = append(r.fields, c.warning(metadata)...)
	return r
}

var _ = operation(newGenerateDataKey)

func newGenerateDataKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate-data-key",
		Short: "Make a data key, wrapped with a key of the broker",
		Long: `Makes a data key and wraps it with a key of the broker. The output is in
hexadecimal digits. Store the wrapped key together with the data that the
data key encrypts. Do not store the data key.`,
		Example: `  crypto-broker generate-data-key --profile Orders --keyId orders-kek --context "tenant a"`,
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, key, bound := profileFlag(cmd), wrappingKeyFlag(cmd, "the wrapping key"), contextFlag(cmd)
	without := cmd.Flags().Bool("without-data-key", false, "return only the wrapped key")
	c := newCaller(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		request := &v1.GenerateDataKeyRequest{Profile: *profile, KeyId: *key, Context: []byte(*bound), WithoutDataKey: *without}
		return c.run("Generating data key", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).GenerateDataKey(ctx, request)
			if err != nil {
				return nil, err
			}
			values := []field{{"wrappedKey", reply.GetWrappedKey()}}
			if !*without {
				values = append([]field{{"dataKey", reply.GetDataKey()}}, values...)
			}
			return c.hexResult("Generate data key response", reply.GetMetadata(), reply.GetDescriptor_(), values...), nil
		})
	}
	return cmd
}

var _ = operation(newWrapKey)

func newWrapKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "wrap-key",
		Short:   "Wrap a data key with a key of the broker",
		Long:    `Wraps a data key of 16 to 8192 bytes. The output is in hexadecimal digits.`,
		Example: `  crypto-broker wrap-key --profile Orders --keyId orders-kek --data-key-file key.hex`,
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, key, bound := profileFlag(cmd), wrappingKeyFlag(cmd, "the wrapping key"), contextFlag(cmd)
	file := cmd.Flags().String("data-key-file", "", "file with the data key in hexadecimal digits, - for standard input")
	_ = cmd.MarkFlagRequired("data-key-file")
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text, err := (&inputs{cmd: cmd}).read("the data key", *file, maxKeyFile)
		if err != nil {
			return err
		}
		request := &v1.WrapKeyRequest{Profile: *profile, KeyId: *key, Context: []byte(*bound)}
		if request.DataKey, err = digits("the content of --data-key-file", string(text)); err != nil {
			return err
		}
		return c.run("Wrapping key", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).WrapKey(ctx, request)
			if err != nil {
				return nil, err
			}
			return c.hexResult("Wrap key response", reply.GetMetadata(), reply.GetDescriptor_(), field{"wrappedKey", reply.GetWrappedKey()}), nil
		})
	}
	return cmd
}

var _ = operation(newUnwrapKey)

func newUnwrapKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unwrap-key [WRAPPED_KEY|-]",
		Short: "Return the data key of a wrapped key",
		Long: `Unwraps the argument, standard input (-) or a file, in hexadecimal digits. The
output is in hexadecimal digits.`,
		Example: `  crypto-broker unwrap-key --file key.wrapped --profile Orders --context "tenant a" --output text`,
	}
	wrapped := wrappedArgument(cmd)
	profile, bound := profileFlag(cmd), contextFlag(cmd)
	c := newCaller(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		request := &v1.UnwrapKeyRequest{Profile: *profile, Context: []byte(*bound)}
		var err error
		if request.WrappedKey, err = wrapped(args); err != nil {
			return err
		}
		return c.run("Unwrapping key", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).UnwrapKey(ctx, request)
			if err != nil {
				return nil, err
			}
			return c.hexResult("Unwrap key response", reply.GetMetadata(), reply.GetDescriptor_(), field{"dataKey", reply.GetDataKey()}), nil
		})
	}
	return cmd
}

var _ = operation(newRewrapKey)

func newRewrapKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rewrap-key [WRAPPED_KEY|-]",
		Short: "Wrap a wrapped key again, with the newest version of its key or another key",
		Long: `Wraps the argument, standard input (-) or a file, in hexadecimal digits, with the
newest version of its wrapping key, or with another key. The data key stays in
the broker. The output is in hexadecimal digits.`,
		Example: `  crypto-broker rewrap-key --file key.wrapped --profile Orders --keyId orders-2027 --output text`,
	}
	wrapped := wrappedArgument(cmd)
	profile, bound, key := profileFlag(cmd), contextFlag(cmd), wrappingKeyFlag(cmd, "the new wrapping key; leave it out for the newest version of the same key")
	c := newCaller(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		request := &v1.RewrapKeyRequest{Profile: *profile, Context: []byte(*bound), KeyId: *key}
		var err error
		if request.WrappedKey, err = wrapped(args); err != nil {
			return err
		}
		return c.run("Rewrapping key", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).RewrapKey(ctx, request)
			if err != nil {
				return nil, err
			}
			r := c.hexResult("Rewrap key response", reply.GetMetadata(), reply.GetDescriptor_(), field{"wrappedKey", reply.GetWrappedKey()})
			r.fields = append(r.fields, field{"unchanged", reply.GetUnchanged()})
			return r, nil
		})
	}
	return cmd
}

var _ = operation(newGetPublicKey)

func newGetPublicKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get-public-key",
		Short:   "Return the public key of a key pair of the broker, in PEM",
		Example: `  crypto-broker get-public-key --profile Orders --keyId orders-rsa --output text > orders.pem`,
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, key := profileFlag(cmd), wrappingKeyFlag(cmd, "the key pair")
	c := newCaller(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		request := &v1.GetPublicKeyRequest{Profile: *profile, KeyId: *key}
		return c.run("Getting public key", nil, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).GetPublicKey(ctx, request)
			if err != nil {
				return nil, err
			}
			fields := []field{{"pem", reply.GetPem()}, {"version", reply.GetVersion()}}
			return &result{message: "Get public key response", fields: append(fields, c.warning(reply.GetMetadata())...), text: []byte(reply.GetPem())}, nil
		})
	}
	return cmd
}

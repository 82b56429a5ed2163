// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

var _ = operation(newHashData)

func newHashData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hash-data [DATA|-]",
		Short: "Compute a digest by the algorithm of a profile",
		Long: `Computes the digest of the argument, of standard input (-), or of a file of any
size, by the algorithm of a profile. For more than 1 MiB, --timeout is for each
part that the broker reads, and there is no limit for the whole input.`,
		Example: `  crypto-broker hash-data "Welcome" --profile Default
  crypto-broker hash-data --file backup.tar --output text`,
		Args:              commandline.Arguments(0, 1, dataArgument("what to hash")),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	profile, file := profileFlag(cmd), dataFlag(cmd, "what to hash")
	format := commandline.ChoiceFlag(cmd, "output-format", "", "how the digest is written: hex or raw (base64 in JSON)", "hex", "raw")
	c := newCaller(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := &v1.HashDataRequest{Profile: *profile, OutputFormat: v1.HashOutputFormat_HASH_OUTPUT_FORMAT_HEX}
		if format.Value == "raw" {
			request.OutputFormat = v1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW
		}
		in := &inputs{cmd: cmd}
		path, err := in.path(args, *file)
		if err != nil {
			return err
		}
		announced := []any{"profile", *profile}
		if path == "" {
			request.Input = []byte(args[0])
			announced = []any{"input", args[0], "profile", *profile}
		} else {
			whole, err := readWhole(in, path, request)
			if err != nil {
				return err
			}
			if whole != nil {
				defer whole.Close()
				if c.loop != noLoop {
					return program.Usagef("--loop is for at most %d bytes, and there are more", maxInput)
				}
				c.InParts = true
				return c.run("Hashing input", announced, func(ctx context.Context) (*result, error) {
					return c.hashStream(ctx, request, whole)
				})
			}
		}
		return c.run("Hashing input", announced, func(ctx context.Context) (*result, error) {
			reply, err := v1.NewCryptoServiceClient(c.Conn).HashData(ctx, request)
			if err != nil {
				return nil, err
			}
			return c.hashed(reply), nil
		})
	}
	return cmd
}

// digest has the methods that the replies to HashData and to HashStream share.
type digest interface {
	GetMetadata() *v1.Metadata
	GetHashValueHex() string
	GetHashValueRaw() []byte
	GetDescriptor_() *v1.CryptoDescriptor
}

// readWhole reads a file or standard input into the request. If it is too large for
// one request, readWhole returns a reader of all of it.
func readWhole(in *inputs, path string, request *v1.HashDataRequest) (io.ReadCloser, error) {
	file, err := in.open("what to hash", path)
	if err != nil {
		return nil, err
	}
	begin, err := io.ReadAll(io.LimitReader(file, maxInput+1))
	if err == nil && len(begin) > maxInput {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(begin), file), file}, nil
	}
	request.Input = begin
	return nil, errors.Join(err, file.Close())
}

// hashStream sends an input that is too large for one request.
func (c *caller) hashStream(ctx context.Context, request *v1.HashDataRequest, whole io.Reader) (*result, error) {
	stream, err := streamv1.NewStreamServiceClient(c.Conn).HashStream(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Start{
		Start: &streamv1.HashStreamStart{Profile: request.GetProfile(), OutputFormat: request.GetOutputFormat()},
	}})
	chunk := make([]byte, 256<<10)
	for err == nil {
		c.Pause()
		n, read := io.ReadFull(whole, chunk)
		c.Resume()
		if n > 0 {
			err = stream.Send(&streamv1.HashStreamRequest{Part: &streamv1.HashStreamRequest_Chunk{Chunk: chunk[:n]}})
		}
		if errors.Is(read, io.EOF) || errors.Is(read, io.ErrUnexpectedEOF) {
			break
		}
		if read != nil {
			return nil, fmt.Errorf("the input cannot be read: %w", read)
		}
	}
	// If the stream has ended early, its reply has the reason.
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	reply, err := stream.CloseAndRecv()
	if err != nil {
		return nil, err
	}
	return c.hashed(reply), nil
}

// hashed returns the result of a call that hashes.
func (c *caller) hashed(d digest) *result {
	type response struct {
		Algorithm  string               `json:"hashAlgorithm"`
		HashValue  map[string]any       `json:"HashValue"`
		Descriptor *v1.CryptoDescriptor `json:"descriptor"`
	}
	descriptor := d.GetDescriptor_()
	released := response{descriptor.GetAlgorithm(), map[string]any{"HashValueHex": d.GetHashValueHex()}, descriptor}
	r := &result{message: "Hashed response", took: "Data Hashing", text: []byte(d.GetHashValueHex() + "\n")}
	value := field{"hashValueHex", d.GetHashValueHex()}
	if raw := d.GetHashValueRaw(); raw != nil {
		encoded := base64.StdEncoding.EncodeToString(raw)
		value, r.text = field{"hashValueRaw", encoded}, raw
		released.HashValue = map[string]any{"HashValueRaw": encoded}
	}
	r.response = released
	r.fields = append([]field{value, {"hashAlgorithm", descriptor.GetAlgorithm()}, {"descriptor", descriptor}}, c.warning(d.GetMetadata())...)
	return r
}

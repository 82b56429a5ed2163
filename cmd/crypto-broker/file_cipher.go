// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/atomicfile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
)

// fileChunk is the number of bytes of a file in one message. A broker accepts no more.
const fileChunk = 64 << 10

// outputMode is the mode of new files.
const outputMode = 0o600

var _ = operation(newEncryptFile)

func newEncryptFile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encrypt-file INPUT OUTPUT",
		Short: "Encrypt a file of any size",
		Long: `Encrypts a file of any size with a new data key, which is wrapped with a key of
the broker. The output has the wrapped key in front, and needs nothing else to be
decrypted. Standard input and standard output are -. The output file appears
only when it is complete. --timeout is for each part that the broker reads.`,
		Example: `  crypto-broker encrypt-file backup.tar backup.tar.enc --profile Orders --keyId orders-kek --context "tenant a"`,
	}
	profile, key, bound := profileFlag(cmd), wrappingKeyFlag(cmd, "the wrapping key"), contextFlag(cmd)
	return fileCommand(cmd, "encrypted", func(ctx context.Context, b *connection.Broker) (fileStream, error) {
		stream, err := streamv1.NewStreamServiceClient(b.Conn).EncryptStream(ctx)
		if err != nil {
			return fileStream{}, err
		}
		start := &streamv1.EncryptStreamStart{Profile: *profile, KeyId: *key, Context: []byte(*bound)}
		return fileStream{
			start: func() error {
				return stream.Send(&streamv1.EncryptStreamRequest{Part: &streamv1.EncryptStreamRequest_Start{Start: start}})
			},
			send: func(chunk []byte) error {
				return stream.Send(&streamv1.EncryptStreamRequest{Part: &streamv1.EncryptStreamRequest_Chunk{Chunk: chunk}})
			},
			close: stream.CloseSend,
			receive: func() ([]byte, *streamv1.StreamEnd, error) {
				reply, err := stream.Recv()
				return reply.GetChunk(), reply.GetEnd(), err
			},
		}, nil
	})
}

var _ = operation(newDecryptFile)

func newDecryptFile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decrypt-file INPUT OUTPUT",
		Short: "Decrypt a file that encrypt-file has encrypted",
		Long: `Decrypts what encrypt-file has encrypted. Standard input and standard output are
-. The output file appears only when it is complete and authentic. Standard output gets
authentic data before the end was checked: discard it if the exit code is not 0.`,
		Example: `  crypto-broker decrypt-file backup.tar.enc backup.tar --profile Orders --context "tenant a"`,
	}
	profile, bound := profileFlag(cmd), contextFlag(cmd)
	return fileCommand(cmd, "decrypted", func(ctx context.Context, b *connection.Broker) (fileStream, error) {
		stream, err := streamv1.NewStreamServiceClient(b.Conn).DecryptStream(ctx)
		if err != nil {
			return fileStream{}, err
		}
		start := &streamv1.DecryptStreamStart{Profile: *profile, Context: []byte(*bound)}
		return fileStream{
			start: func() error {
				return stream.Send(&streamv1.DecryptStreamRequest{Part: &streamv1.DecryptStreamRequest_Start{Start: start}})
			},
			send: func(chunk []byte) error {
				return stream.Send(&streamv1.DecryptStreamRequest{Part: &streamv1.DecryptStreamRequest_Chunk{Chunk: chunk}})
			},
			close: stream.CloseSend,
			receive: func() ([]byte, *streamv1.StreamEnd, error) {
				reply, err := stream.Recv()
				return reply.GetChunk(), reply.GetEnd(), err
			},
		}, nil
	})
}

// fileStream is a stream of either kind.
type fileStream struct {
	start   func() error
	send    func(chunk []byte) error
	close   func() error
	receive func() (chunk []byte, end *streamv1.StreamEnd, err error)
}

// fileCommand sets the arguments and the action of a command. done is the participle for its
// message, such as "encrypted".
func fileCommand(cmd *cobra.Command, done string, open func(context.Context, *connection.Broker) (fileStream, error)) *cobra.Command {
	cmd.Args = commandline.Arguments(2, 2, "the input and the output, - for standard input and standard output")
	b := connection.Flags(cmd)
	b.InParts = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		input, err := (&inputs{cmd: cmd}).open("the input", args[0])
		if err != nil {
			return err
		}
		defer input.Close()
		if err := b.Open(cmd); err != nil {
			return err
		}
		defer b.Close()
		var processed atomic.Int64
		defer connection.ReportProgress(b.Stderr, func() string { return b.Progress(done + " " + progressOf(processed.Load(), input)) })()
		write := func(to io.Writer) error {
			return b.CallQuietly(cmd.Context(), func(ctx context.Context) error {
				stream, err := open(ctx, b)
				if err != nil {
					return err
				}
				return copyFile(b, stream, to, input, &processed)
			})
		}
		if args[1] == commandline.StandardInput {
			return write(cmd.OutOrStdout())
		}
		return atomicfile.Write(args[1], outputMode, func(to *os.File) error { return write(to) })
	}
	return cmd
}

// progressOf returns how much of an input was processed, and the size of the input if it is
// known.
func progressOf(bytes int64, input io.ReadCloser) string {
	const mebibyte = 1 << 20
	if file, ok := input.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return fmt.Sprintf("%d of %d MiB", bytes/mebibyte, info.Size()/mebibyte)
		}
	}
	return fmt.Sprintf("%d MiB", bytes/mebibyte)
}

// copyFile sends the input and writes the replies. processed counts the bytes of the input.
func copyFile(b *connection.Broker, stream fileStream, to io.Writer, from io.Reader, processed *atomic.Int64) error {
	unread := make(chan error, 1)
	go func() {
		err := stream.start()
		chunk := make([]byte, fileChunk)
		for err == nil {
			b.Pause()
			n, read := io.ReadFull(from, chunk)
			b.Resume()
			if n > 0 {
				err = stream.send(chunk[:n])
				processed.Add(int64(n))
			}
			if errors.Is(read, io.EOF) || errors.Is(read, io.ErrUnexpectedEOF) {
				break
			}
			if read != nil {
				unread <- fmt.Errorf("the input cannot be read: %w", read)
				return
			}
		}
		// If the stream has ended early, the received error is the reason.
		if err == nil {
			err = stream.close()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err != nil {
			unread <- err
		}
	}()
	received := make(chan error, 1)
	go func() { received <- writeReplies(b, stream, to) }()
	select {
	case err := <-unread:
		return err // the end of the context ends the stream
	case err := <-received:
		return err
	}
}

func writeReplies(b *connection.Broker, stream fileStream, to io.Writer) error {
	var last *streamv1.StreamEnd
	for {
		chunk, end, err := stream.receive()
		switch {
		case errors.Is(err, io.EOF) && last != nil:
			connection.WarnDeprecated(b.Stderr, last.GetMetadata())
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("the broker closed the stream before its end")
		case err != nil:
			return err
		}
		if end != nil {
			last = end
		}
		if _, err := to.Write(chunk); err != nil {
			return fmt.Errorf("the output cannot be written: %w", err)
		}
	}
}

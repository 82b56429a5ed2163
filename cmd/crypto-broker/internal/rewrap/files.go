// SPDX-License-Identifier: Apache-2.0

package rewrap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/atomicfile"
)

// maxLine is the size in bytes of the longest line with a wrapped key.
const maxLine = 2*blob.MaxSize + 1024

// files returns the jobs of files and of all regular files in directories.
func (r *Run) files(paths []string) func(yield func(job) bool) error {
	return func(yield func(job) bool) error {
		stopped := false
		for _, path := range paths {
			if stopped {
				return nil
			}
			path, err := filepath.EvalSymlinks(path) // the file is replaced, not the link
			if err != nil {
				return fmt.Errorf("%w; the files before it were rewrapped", err)
			}
			err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
				if err != nil {
					r.report(name, err)
					return nil
				}
				if !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), atomicfile.Prefix) {
					return nil
				}
				next := job{name, func(ctx context.Context) (bool, error) { return r.file(ctx, name, name == path) }}
				if stopped = !yield(next); stopped {
					return fs.SkipAll
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// file rewraps the key in a file. named is whether the user named the file, and not its directory.
func (r *Run) file(ctx context.Context, path string, named bool) (already bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	wrapped, write, err := readWrapped(file)
	if errors.Is(err, errIgnored) && named {
		return false, errors.New("found neither a wrapped key nor an encrypted stream")
	}
	if err != nil {
		return false, err
	}
	fresh, already, err := r.rewrap(ctx, wrapped)
	if err != nil || already {
		return already, err
	}
	return false, atomicfile.Write(path, info.Mode().Perm(), func(to *os.File) error {
		if err := keepOwner(to, info); err != nil {
			return err
		}
		return write(to, fresh)
	})
}

// readWrapped reads the wrapped key of a file, and returns a function that writes the file with
// another wrapped key. If the file has no wrapped key, it returns errIgnored.
func readWrapped(file io.Reader) (wrapped []byte, write func(to io.Writer, fresh []byte) error, err error) {
	begin := make([]byte, maxLine)
	n, err := io.ReadFull(io.LimitReader(file, int64(blob.StreamPrefixSize)), begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, err
	}
	if blob.IsStream(begin[:n]) {
		size, err := blob.StreamKeySize(begin)
		if err != nil {
			return nil, nil, fmt.Errorf("the file %w", err)
		}
		wrapped = make([]byte, size)
		if _, err := io.ReadFull(file, wrapped); err != nil {
			return nil, nil, fmt.Errorf("the file ends in the header of an encrypted stream: %w", err)
		}
		return wrapped, func(to io.Writer, fresh []byte) error {
			_, err := to.Write(blob.AppendStreamHeader(nil, fresh))
			if err == nil {
				_, err = io.Copy(to, file)
			}
			return err
		}, nil
	}
	more, err := io.ReadFull(file, begin[n:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, err
	}
	content := begin[:n+more]
	if _, _, err := blob.Parse(content); err == nil {
		return content, func(to io.Writer, fresh []byte) error {
			_, err := to.Write(fresh)
			return err
		}, nil
	}
	text := bytes.TrimSpace(content)
	wrapped, err = hex.DecodeString(string(text))
	if err == nil {
		_, _, err = blob.Parse(wrapped)
	}
	if err != nil {
		return nil, nil, errIgnored
	}
	end := content[bytes.LastIndex(content, text)+len(text):]
	return wrapped, func(to io.Writer, fresh []byte) error {
		_, err := to.Write(append(hex.AppendEncode(nil, fresh), end...))
		return err
	}, nil
}

// lines returns the jobs of the lines of an input. The new lines are in the order of the old ones.
func (r *Run) lines(from io.Reader, to io.Writer) func(yield func(job) bool) error {
	return func(yield func(job) bool) (err error) {
		output := bufio.NewWriter(to)
		results := make(chan chan string, MaxParallel)
		written := make(chan error, 1)
		go func() {
			var failed error
			for result := range results {
				if _, err := output.WriteString(<-result); err != nil && failed == nil {
					failed = fmt.Errorf("the output cannot be written: %w", err)
				}
			}
			written <- errors.Join(failed, output.Flush())
		}()
		defer func() {
			close(results)
			err = errors.Join(err, <-written)
		}()
		unchanged := func(text string) {
			result := make(chan string, 1)
			result <- text
			results <- result
		}
		input := bufio.NewReaderSize(from, maxLine)
		stopped := false
		for number := 1; ; number++ {
			name := fmt.Sprintf("line %d", number)
			part, err := input.ReadSlice('\n')
			long := errors.Is(err, bufio.ErrBufferFull)
			if long && !stopped {
				r.report(name, fmt.Errorf("the line has more than %d bytes, and no wrapped key is so long", maxLine))
			}
			for ; errors.Is(err, bufio.ErrBufferFull); part, err = input.ReadSlice('\n') {
				unchanged(string(part))
			}
			line := strings.TrimSuffix(string(part), "\n")
			switch {
			case long || stopped && len(part) > 0:
				unchanged(line + "\n") // unchanged, so that no line is lost
			case len(part) > 0:
				line = strings.TrimSuffix(line, "\r")
				result := make(chan string, 1)
				results <- result
				if stopped = !yield(job{name, func(ctx context.Context) (bool, error) {
					fresh, already, err := r.line(ctx, line)
					result <- fresh + "\n"
					return already, err
				}}); stopped {
					result <- line + "\n"
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return fmt.Errorf("standard input cannot be read: %w", err)
			}
		}
	}
}

// line rewraps the key of a line. It returns the line unchanged if that fails, or if the line is
// empty.
func (r *Run) line(ctx context.Context, line string) (fresh string, already bool, err error) {
	text := strings.TrimSpace(line)
	if text == "" {
		return line, false, errIgnored
	}
	wrapped, err := hex.DecodeString(text)
	if err != nil {
		return line, false, errors.New("the line is not an even number of hexadecimal digits")
	}
	renewed, already, err := r.rewrap(ctx, wrapped)
	if err != nil || already {
		return line, already, err
	}
	return hex.EncodeToString(renewed), false, nil
}

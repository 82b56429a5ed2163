// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// role is the kind of content of a key's file.
type role uint8

const (
	privateKey role = iota
	certificates
	publicKey
	rawKey
	roles = int(iota)
)

// suffixes of the files in the directory itself and in Secrets of most types.
var suffixes = [roles]string{privateKey: ".key", certificates: ".crt", publicKey: ".pub", rawKey: ".bin"}

// tlsNames are the files of a Secret of type kubernetes.io/tls.
var tlsNames = map[string]role{"tls.key": privateKey, "tls.crt": certificates}

// tlsAlso is a file of such a Secret that is not used: the issuer's certificate, which
// cert-manager adds.
const tlsAlso = "ca.crt"

// Bounds of a directory.
const (
	// MaxFileSize is the largest file of a key in bytes. Keys in requests have the same
	// limit.
	MaxFileSize = 64 << 10
	// MaxKeys is the maximum number of keys that a directory may have.
	MaxKeys = 1024
)

// files are the files of one key. Paths are relative to the directory.
type files struct {
	id    string
	paths [roles]string
	// twice are files whose role another file of the key already has.
	twice []string
}

// Problem is one thing that is wrong with a key directory.
type Problem struct {
	// Path is the path of the file or directory, relative to the key directory. It is "."
	// for the key directory itself.
	Path string
	// Key is the id of the key with the problem, empty if the problem is not about a key.
	Key string
	// Message continues a sentence that begins with Path.
	Message string
	// Warning reports whether the key is used in spite of the problem.
	Warning bool
}

// String returns the problem on one line.
func (p Problem) String() string { return p.Path + ": " + p.Message }

// survey returns the files of each key. It skips names that begin with a dot, such as the
// links and directories of a kubelet.
func survey(dir string) ([]files, []Problem, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*files{}
	var problems []Problem
	place := func(id, path string, r role) {
		f := found[id]
		if f == nil {
			f = &files{id: id}
			found[id] = f
		}
		if f.paths[r] != "" {
			f.twice = append(f.twice, path)
			return
		}
		f.paths[r] = path
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			problems = append(problems, Problem{Path: name, Message: "cannot be read: " + reason(err)})
			continue
		}
		if info.IsDir() {
			problems = append(problems, surveySecret(dir, name, place)...)
			continue
		}
		id, r, ok := splitName(name)
		if !ok {
			problems = append(problems, Problem{Path: name, Warning: true, Message: "is ignored, expected the name of a key with .key, .crt, .pub or .bin"})
			continue
		}
		if problem, ok := checkID(id, name); !ok {
			problems = append(problems, problem)
			continue
		}
		place(id, name, r)
	}
	all := make([]files, 0, len(found))
	for _, f := range found {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b files) int { return cmp.Compare(a.id, b.id) })
	if len(all) > MaxKeys {
		problems = append(problems, Problem{Path: ".", Message: fmt.Sprintf("holds %d keys, expected at most %d; only the first of them by name are used", len(all), MaxKeys)})
		all = all[:MaxKeys]
	}
	return all, problems, nil
}

// surveySecret finds the files of a Secret that is mounted as a subdirectory. A Secret of type
// kubernetes.io/tls is one key, whose id is the name of the subdirectory. Other Secrets have
// keys as the directory itself does.
func surveySecret(dir, secret string, place func(id, path string, r role)) []Problem {
	entries, err := os.ReadDir(filepath.Join(dir, secret))
	if err != nil {
		return []Problem{{Path: secret, Key: secret, Message: "cannot be read: " + reason(err)}}
	}
	isTLS := slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		_, ok := tlsNames[entry.Name()]
		return ok
	})
	var problems []Problem
	used := false
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(secret, name)
		if strings.HasPrefix(name, ".") || isTLS && name == tlsAlso {
			continue
		}
		id := secret
		r, ok := tlsNames[name]
		if !ok {
			id, r, ok = splitName(name)
		}
		if !ok {
			problems = append(problems, Problem{Path: path, Key: secret, Warning: true, Message: "is ignored, expected tls.key, tls.crt or the name of a key with .key, .crt, .pub or .bin"})
			continue
		}
		used = true
		if problem, ok := checkID(id, path); !ok {
			problems = append(problems, problem)
			continue
		}
		place(id, path, r)
	}
	if !used {
		problems = append(problems, Problem{Path: secret, Key: secret, Message: "holds no file of a key, expected tls.key, tls.crt or names of keys with .key, .crt, .pub or .bin"})
	}
	return problems
}

func splitName(name string) (id string, r role, ok bool) {
	for r, suffix := range suffixes {
		if id, ok := strings.CutSuffix(name, suffix); ok && id != "" {
			return id, role(r), true
		}
	}
	return "", 0, false
}

// checkID reports whether the part of a name that is the id of a key is valid. It may have
// letters, digits, dots, hyphens and underscores, which every file system allows.
func checkID(id, path string) (Problem, bool) {
	safe := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
	}
	if len(id) > maxIDLength {
		return Problem{Path: path, Message: fmt.Sprintf("is ignored: as the id of a key it has %d bytes, expected at most %d", len(id), maxIDLength)}, false
	}
	for _, c := range []byte(id) {
		if !safe(c) {
			return Problem{Path: path, Message: "is ignored: the id of a key has letters, digits, dots, hyphens and underscores only"}, false
		}
	}
	return Problem{}, true
}

// reason returns an error of the file system without the path, because the message already has
// the path.
func reason(err error) string {
	if e, ok := err.(*os.PathError); ok { //nolint:errorlint // a wrapped error has text that would be lost
		return e.Err.Error()
	}
	return err.Error()
}

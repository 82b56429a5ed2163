// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// secretKey has the flags that name the key of an encryption.
type secretKey struct {
	id, raw, key, file string
	// kind says whether key is an id or the key itself. Older command lines have only these two
	// flags.
	kind *commandline.Choice
}

// The values of --keySource.
const (
	kindRaw   = "raw"
	kindKeyID = "key-id"
)

func secretKeyFlags(cmd *cobra.Command) *secretKey {
	k := &secretKey{}
	cmd.Flags().StringVar(&k.id, "keyId", "", "id of a key that the broker has")
	cmd.Flags().StringVar(&k.file, "key-file", "", "file with the key in hexadecimal digits, - for standard input")
	cmd.Flags().StringVar(&k.raw, "keyRaw", "", "the key in hexadecimal digits; everybody who lists processes sees it")
	cmd.Flags().StringVar(&k.key, "key", "", "the same as --keyRaw, or as --keyId with --keySource key-id")
	k.kind = commandline.ChoiceFlag(cmd, "keySource", "", "kind of --key: raw or key-id", kindRaw, kindKeyID)
	return k
}

func (k *secretKey) source(in *inputs) (*v1.KeySource, error) {
	name, err := oneOf(in.cmd, "keyId", "key-file", "keyRaw", "key")
	if err != nil {
		return nil, err
	}
	if in.cmd.Flags().Changed("keySource") && name != "key" {
		return nil, program.Usagef("found --keySource and --%s, expected --key together with --keySource", name)
	}
	switch {
	case name == "keyId":
		return keyByID(k.id), nil
	case name == "key" && k.kind.Value == kindKeyID:
		return keyByID(k.key), nil
	case name == "key-file":
		text, err := in.read("the key", k.file, maxKeyFile)
		if err != nil {
			return nil, err
		}
		raw, err := digits("the content of --key-file", string(text))
		return rawKey(raw), err
	default:
		warnOfKey(in.cmd, name)
		raw, err := hexFlag(in.cmd, name)
		return rawKey(raw), err
	}
}

// signingKey has the flags that name the key of a signature, or the two keys of a
// hybrid.
type signingKey struct {
	ids, files []string
	raw        string
}

func signingKeyFlags(cmd *cobra.Command, what string) *signingKey {
	k := &signingKey{}
	again := "; for a hybrid twice, the classical key first"
	cmd.Flags().StringArrayVar(&k.ids, "keyId", nil, "id of a key that the broker has"+again)
	cmd.Flags().StringArrayVar(&k.files, "key", nil, "file with "+what+" in PEM or DER, - for standard input"+again)
	cmd.Flags().StringArrayVar(&k.files, "key-file", nil, "the same as --key")
	cmd.Flags().StringVar(&k.raw, "keyRaw", "", "the bytes of such a file in hexadecimal digits; everybody who lists processes sees them")
	return k
}

func (k *signingKey) source(in *inputs) (*v1.SignKeySource, error) {
	name, err := oneOf(in.cmd, "keyId", "key", "key-file", "keyRaw")
	if err != nil {
		return nil, err
	}
	var keys []*v1.KeySource
	switch name {
	case "keyId":
		for _, id := range k.ids {
			keys = append(keys, keyByID(id))
		}
	case "keyRaw":
		warnOfKey(in.cmd, name)
		raw, err := hexFlag(in.cmd, name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, rawKey(raw))
	default:
		for _, path := range k.files {
			raw, err := in.read("the key", path, maxKeyFile)
			if err != nil {
				return nil, err
			}
			keys = append(keys, rawKey(raw))
		}
	}
	if len(keys) == 1 {
		return &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: keys[0]}}, nil
	}
	return &v1.SignKeySource{Source: &v1.SignKeySource_ComponentKeys{ComponentKeys: &v1.ComponentKeys{Keys: keys}}}, nil
}

func keyByID(id string) *v1.KeySource { return &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}} }

func rawKey(key []byte) *v1.KeySource {
	return &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: key}}
}

// oneOf returns the flag that is given, of several flags that exclude each other.
func oneOf(cmd *cobra.Command, names ...string) (string, error) {
	var given string
	for _, name := range names {
		switch {
		case !cmd.Flags().Changed(name):
		case given != "":
			return "", program.Usagef("found --%s and --%s, expected one of them", given, name)
		default:
			given = name
		}
	}
	if given == "" {
		return "", program.Usagef("no key is named, expected --%s, --%s or --%s", names[0], names[1], names[2])
	}
	return given, nil
}

// warnOfKey warns that other users can see a key on the command line.
func warnOfKey(cmd *cobra.Command, flag string) {
	fmt.Fprintf(cmd.ErrOrStderr(), "warning: --%s shows the key to everybody who lists processes, and to the shell's history; use --key-file or --keyId\n", flag)
}

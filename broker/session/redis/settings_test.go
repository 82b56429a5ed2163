// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongSettingsAreRefusedWithOneSentence(t *testing.T) {
	const one, fine = "Addresses: [r:6379]\n", "WithoutTLS: true\nKeysInClear: true\n"
	for sentence, test := range map[string]struct{ text, want string }{
		"no address":                   {fine, "Addresses has 0 entries, expected 1 to 64"},
		"an address without a port":    {"Addresses: [r]\n" + fine, `Addresses[0] is "r", expected host:port such as redis.example:6379`},
		"an address with a wrong port": {"Addresses: ['r:0']\n" + fine, `Addresses[0] is "r:0", expected host:port`},
		"two addresses of one server":  {"Addresses: ['r:1', 's:1']\n" + fine, "Addresses has 2 entries, expected one, unless Cluster or SentinelMaster is set"},
		"a cluster with Sentinels":     {one + fine + "Cluster: true\nSentinelMaster: m\n", "Cluster and SentinelMaster are both set, expected one of them"},
		"a user of no Sentinels":       {one + fine + "SentinelUser: u\n", "SentinelUser is set, expected SentinelMaster as well"},
		"a negative database":          {one + fine + "Database: -1\n", "Database is -1, expected 0 to 32767"},
		"a database of a cluster":      {one + fine + "Cluster: true\nDatabase: 1\n", "Database is 1, expected 0, the only one of a cluster"},
		"a name of no certificate":     {one + fine + "ServerName: r\n", "ServerName is set, expected it without WithoutTLS"},
		"a timeout that is too long":   {one + fine + "Timeout: 11s\n", "Timeout is 11s, expected 10ms to 10s"},
		"too few sessions":             {one + fine + "MaxSessions: 1023\n", "MaxSessions is 1023, expected 1024 to 16777216"},
		"no protection of keys":        {one + "WithoutTLS: true\n", "WrappingKey is missing, expected the id of an AES key of 256 bits that wraps the keys of sessions; or set KeysInClear"},
		"both protections of keys":     {one + fine + "WrappingKey: k\n", "WrappingKey and KeysInClear are both set, expected one of them"},
		"a misspelt field":             {one + fine + "Address: r\n", "found the unknown field Address"},
		"a user without a password":    {one + fine + "User: broker\n", `has no file password, which the user "broker" needs`},
		"no YAML":                      {"[", "is not a file of settings for Redis"},
		"too much":                     {strings.Repeat("#", 65<<10), "has more than 65536 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, _, err := Read(directory(t, map[string]string{FileName: test.text}))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestWrongFilesBesideTheSettingsAreRefused(t *testing.T) {
	for sentence, test := range map[string]struct{ file, text, want string }{
		"a password with a line break":    {Password, "secret\n", "is empty or has a line break, expected a password and nothing else"},
		"an empty password":               {SentinelPassword, "", "is empty or has a line break"},
		"authorities without any":         {"ca.crt", "-", "ca.crt has no certificate"},
		"a certificate that there is not": {"tls.crt", "-", "tls.crt and tls.key cannot be used"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, _, err := Read(directory(t, map[string]string{FileName: "Addresses: ['r:6379']\nKeysInClear: true\n", test.file: test.text}))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	if _, _, err := Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without settings: %v", err)
	}
}

func TestAPasswordThatOthersMayReadIsWarnedOf(t *testing.T) {
	dir := directory(t, map[string]string{FileName: "Addresses: ['r:6379']\nKeysInClear: true\n", Password: "secret"})
	if _, warnings, err := Read(dir); err != nil || len(warnings) > 0 {
		t.Errorf("%v, %q", err, warnings)
	}
	if err := os.Chmod(filepath.Join(dir, Password), 0o644); err != nil { //nolint:gosec // it is wrong on purpose
		t.Fatal(err)
	}
	_, warnings, err := Read(dir)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "password is a secret that every user may read (mode 0644)") {
		t.Errorf("%v, %q", err, warnings)
	}
}

func TestAWrappingKeyNeedsKeys(t *testing.T) {
	settings, _, err := Read(directory(t, map[string]string{FileName: "Addresses: ['r:6379']\nWrappingKey: k\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Settings: settings}); err == nil || err.Error() != `WrappingKey is "k", and the broker has no keys` {
		t.Error(err)
	}
}

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

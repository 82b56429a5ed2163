// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	protoPackage = regexp.MustCompile(`(?m)^package ([\w.]+);`)
	service      = regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)+)^service (\w+) \{\n(.*?)^\}`)
	method       = regexp.MustCompile(`(?m)((?:^  //[^\n]*\n)+)^  rpc (\w+)\((stream )?(\w+)\)\s+returns \((stream )?(\w+)\)`)
	// slashes matches the beginnings of comment lines.
	slashes = regexp.MustCompile(`(?m)^ *// ?`)
)

func methods() (string, error) {
	var files []string
	for _, pattern := range []string{"v0", "v1", "*/v1"} {
		found, err := filepath.Glob("api/grpc/cryptobroker/" + pattern + "/*.proto")
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	b := begin("Methods of gRPC", "The messages and their fields are described in the `.proto` files. A [client](../examples/README.md) has a method for each operation. What operations do, and\n"+
		"how they fail, is in [operations](../operations/README.md). `v0` is for clients of releases before version 1.")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		for _, s := range service.FindAllStringSubmatch(string(text), -1) {
			fmt.Fprintf(b, "\n## %s.%s\n\n%s [Source](../../%s).\n\n| method | request | reply | what it does |\n|---|---|---|---|\n",
				protoPackage.FindStringSubmatch(string(text))[1], s[2], strings.Join(strings.Fields(slashes.ReplaceAllString(s[1], "")), " "), file)
			found := method.FindAllStringSubmatch(s[3], -1)
			if count := strings.Count(s[3], "  rpc "); len(found) != count {
				return "", fmt.Errorf("%s: read %d of the %d methods of %s, expected each with a comment", file, len(found), count, s[2])
			}
			for _, m := range found {
				row(b, "`"+m[2]+"`", m[3]+"`"+m[4]+"`", m[5]+"`"+m[6]+"`", slashes.ReplaceAllString(m[1], ""))
			}
		}
	}
	return b.String(), nil
}

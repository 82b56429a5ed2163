// SPDX-License-Identifier: Apache-2.0

// Command image builds the project's container images without a base image, a container engine or a network: each is
// one static Go program in one layer, owned by root and run as user 65532. The same source gives the same bytes. Images
// with OpenSSL have one more layer, with packages of Debian.
//
// It prints one line for each image: its name with the tag, a tab, and the archive (a Docker image archive, which
// "docker load", "ctr images import" and "kind load image-archive" take).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

const usage = `Usage: hack/image/build [--out DIR] [--tag TAG] [--source DIR] [--arch ARCH] [--only NAMES] [--cover DIR] [--push REPOSITORY] [--locked]
       hack/image/build --oci --tag TAG [--out DIR] [--version VERSION] [--arch ARCH,ARCH] [--only NAMES] [--locked]
       hack/image/build --write-lock

Builds the images crypto-broker/broker, crypto-broker/operator, crypto-broker/gateway, crypto-broker/cli and
crypto-broker/demo-app as archives, each of one static program, without a base image and without a container engine. Prints one line an image: its name and
tag, a tab, and the path of the archive. With --oci the archives are OCI image layouts, each with one image for several architectures.

--only broker-openssl,gateway-openssl builds the images with OpenSSL, which have packages of Debian, by apt-get: the newest ones, or with --locked
those that hack/image/debian.lock names. --write-lock writes that file.

`

// options are the settings of the command line.
type options struct {
	out, tag, source, version, arch, push, cover string
	oci, locked, writeLock                       bool
	programs                                     []program
}

func main() {
	options, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func parseOptions(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.out, "out", "", "folder for the archives (default: images in the cache folder of the repository)")
	flags.StringVar(&o.tag, "tag", "", "tag of the images (default: the version and a hash of the programs, so that other programs have another tag)")
	flags.StringVar(&o.source, "source", "", "checkout of the repository to build from (default: the one this program is in)")
	flags.StringVar(&o.version, "version", "", "version that programs and labels state (default: the output of git describe)")
	flags.StringVar(&o.arch, "arch", runtime.GOARCH, "processor architecture, as in GOARCH; with --oci several, separated by commas")
	flags.BoolVar(&o.oci, "oci", false, "write OCI image layouts, which registries' tools take, and not Docker image archives")
	flags.StringVar(&o.push, "push", "", "also push the images to this registry and path, for example registry.example/crypto-broker; uses the credentials of \"docker login\"")
	flags.StringVar(&o.cover, "cover", "", "build programs that write coverage data of the packages below broker, controllers and webhook to this folder of their containers")
	flags.BoolVar(&o.locked, "locked", false, "refuse packages of Debian that "+lockFile+" does not name")
	flags.BoolVar(&o.writeLock, "write-lock", false, "write the packages that Debian has now into "+lockFile+", and build nothing")
	only := flags.String("only", "", "build only these images, of "+programNames(programs)+"; commas separate them (default: all without OpenSSL)")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected options only; --help shows them", flags.Arg(0))
	}
	if o.tag != "" && !validTag.MatchString(o.tag) {
		return o, fmt.Errorf("--tag is %q, expected up to 128 letters, digits, dots, dashes and underscores that start with none of .-", o.tag)
	}
	switch {
	case o.oci && o.tag == "":
		return o, errors.New("--oci needs a --tag")
	case o.oci && o.push != "":
		return o, errors.New("found --oci and --push, expected one of them: tools of registries push layouts")
	case !o.oci && strings.Contains(o.arch, ","):
		return o, fmt.Errorf("--arch is %q, expected one architecture without --oci", o.arch)
	}
	var err error
	if o.programs, err = choose(*only); err != nil {
		return o, err
	}
	repository, err := ownRepository()
	if err != nil {
		return o, err
	}
	if o.source == "" {
		o.source = repository
	}
	if o.source, err = filepath.Abs(o.source); err != nil {
		return o, err
	}
	if o.out == "" {
		cache := os.Getenv("CRYPTO_BROKER_CACHE")
		if cache == "" {
			cache = filepath.Join(repository, ".cache")
		}
		o.out = filepath.Join(cache, "images")
	}
	o.out, err = filepath.Abs(o.out)
	return o, err
}

// validTag is the grammar of a tag in the OCI distribution specification.
var validTag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// ownRepository returns the root of the checkout of the current folder, hack/image.
func ownRepository() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for each := directory; ; each = filepath.Dir(each) {
		if _, err := os.Stat(filepath.Join(each, "hack", "image", "go.mod")); err == nil {
			return each, nil
		}
		if each == filepath.Dir(each) {
			return "", fmt.Errorf("%s is not inside a checkout of the repository; start hack/image/build instead", directory)
		}
	}
}

func run(o options) error {
	if o.writeLock {
		return writeLock(o)
	}
	started := time.Now()
	version := o.version
	if version == "" {
		var err error
		if version, err = describe(o.source); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if o.oci {
		return writeLayouts(o, version)
	}
	progress("building %s of %s, version %s (up to a minute the first time)", programNames(o.programs), o.source, version)
	binaries, err := buildPrograms(o, version)
	if err != nil {
		return err
	}
	debian, err := debianLayerFor(o)
	if err != nil {
		return err
	}
	if o.tag == "" {
		if o.tag, err = contentTag(version, o.programs, binaries, debian); err != nil {
			return err
		}
	}
	for _, each := range o.programs {
		image, err := pack(each, binaries[each.name], debian, o, version)
		if err != nil {
			return fmt.Errorf("pack %s: %w", each.name, err)
		}
		archive := filepath.Join(o.out, each.name+"-"+o.tag+".tar")
		name := "localhost/crypto-broker/" + each.name + ":" + o.tag
		if err := writeArchive(archive, name, image); err != nil {
			return fmt.Errorf("write the image %s to %s: %w", name, archive, err)
		}
		if o.push != "" {
			name = strings.TrimSuffix(o.push, "/") + "/" + each.name + ":" + o.tag
			progress("pushing %s", name)
			if err := push(name, image); err != nil {
				return fmt.Errorf("push %s: %w", name, err)
			}
		}
		fmt.Printf("%s\t%s\n", name, archive)
	}
	progress("%d images with the tag %s after %.1f s", len(o.programs), o.tag, time.Since(started).Seconds())
	return removeOlder(o.out, o.tag)
}

func progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "image: "+format+"\n", arguments...)
}

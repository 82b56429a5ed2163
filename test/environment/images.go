// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Images are the project's container images of one version of the source.
type Images struct {
	// Registry is the registry and path in front of each image's name. Tag is the tag of all images.
	Registry, Tag string
	// Archives are the images' files on this machine, as Cluster.Load takes them.
	Archives []string
}

// ImageOptions say which images to build.
type ImageOptions struct {
	// Out is the folder for the archives.
	Out string
	// Only are the names of the images to build; empty: all images.
	Only []string
	// Source is the checkout to build from; empty: the checkout of the current folder.
	Source string
	// Push is the registry and path to upload to; empty: nowhere.
	Push string
	// Cover is the folder in the containers into which the programs write coverage data; empty: they write none.
	Cover string
}

// BuildImages builds the images of the repository with hack/image/build, and returns their archives.
func BuildImages(ctx context.Context, progress io.Writer, o ImageOptions) (*Images, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	arguments := []string{"--out", o.Out}
	if len(o.Only) > 0 {
		arguments = append(arguments, "--only", strings.Join(o.Only, ","))
	}
	if o.Source != "" {
		arguments = append(arguments, "--source", o.Source)
	}
	if o.Push != "" {
		arguments = append(arguments, "--push", o.Push)
	}
	if o.Cover != "" {
		arguments = append(arguments, "--cover", o.Cover)
	}
	output, err := Command(ctx, "", progress, filepath.Join(repository, "hack", "image", "build"), arguments...)
	if err != nil {
		return nil, err
	}
	images := &Images{}
	for line := range strings.Lines(output) {
		name, archive, found := strings.Cut(strings.TrimSpace(line), "\t")
		slash, colon := strings.LastIndex(name, "/"), strings.LastIndex(name, ":")
		if !found || slash < 0 || colon < slash {
			return nil, fmt.Errorf("hack/image/build printed %q, expected an image's name and tag, a tab and an archive", line)
		}
		images.Registry, images.Tag = name[:slash], name[colon+1:]
		images.Archives = append(images.Archives, archive)
	}
	if len(images.Archives) == 0 {
		return nil, fmt.Errorf("hack/image/build printed no image")
	}
	return images, nil
}

// Image returns the full name of an image, for example of "broker".
func (i *Images) Image(name string) string { return i.Registry + "/" + name + ":" + i.Tag }

// KeyGateway returns the values of the chart that install the key gateway with these images.
func (i *Images) KeyGateway() []string {
	return []string{"keyGateway.enabled=true", "keyGateway.image.registry=" + i.Registry, "keyGateway.image.tag=" + i.Tag}
}

// Install builds images, loads them into a local cluster that runs, installs the chart with
// them, and waits until the operator is ready.
func Install(ctx context.Context, progress io.Writer, cluster *Cluster, options ImageOptions) (*Images, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	images, err := BuildImages(ctx, progress, options)
	if err != nil {
		return nil, err
	}
	if err := cluster.Load(ctx, progress, images.Archives...); err != nil {
		return nil, err
	}
	helm, err := NewHelm(ctx, progress, cluster)
	if err != nil {
		return nil, err
	}
	if _, err := helm.Install(ctx, Chart(repository), images); err != nil {
		said, more := cluster.KubectlRun(ctx, nil, "-n", Namespace, "describe", "pods")
		return nil, errors.Join(err, more, errors.New(said))
	}
	return images, nil
}

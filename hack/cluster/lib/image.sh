# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Makes container images of files of this machine. That needs no base image, registry or container engine.

# shellcheck disable=SC2034 # the names are for the other files
readonly pause_image=localhost/cluster/pause:1 dns_image=localhost/cluster/coredns:1

# make_image NAME PROGRAM ARCHIVE [USER] writes a Docker archive. Its only layer has the program, which is the entry
# point. The same program makes the same archive.
make_image() {
	local folder
	folder="$(mktemp -d "$cache/layer.XXXXXX")"
	install -m 0755 "$2" "$folder/$(basename "$2")"
	pack_image "$1" "$folder" "$3" "{\"User\":\"${4:-0:0}\",\"Entrypoint\":[\"/$(basename "$2")\"]}"
	rm -rf "$folder"
}

# pack_image NAME FOLDER ARCHIVE CONFIG writes a Docker archive. Its only layer has the files of the folder. CONFIG is the
# "config" of the OCI image specification, as JSON.
pack_image() {
	local name="$1" folder="$2" archive="$3" work layer config
	work="$(mktemp -d "$cache/image.XXXXXX")"
	mkdir "$work/image"
	reproducible_tar "$folder" "$work/layer.tar"
	layer="$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)"
	mv "$work/layer.tar" "$work/image/$layer.tar"
	printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		"$(go env GOARCH)" "$4" "$layer" >"$work/config.json"
	config="$(sha256sum <"$work/config.json" | cut -d' ' -f1)"
	mv "$work/config.json" "$work/image/$config.json"
	printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["%s.tar"]}]' "$config" "$name" "$layer" \
		>"$work/image/manifest.json"
	reproducible_tar "$work/image" "$work/image.tar"
	mv "$work/image.tar" "$archive"
	rm -rf "$work"
}

# reproducible_tar FOLDER ARCHIVE writes an archive that depends on nothing but names and content of the files.
reproducible_tar() {
	tar --create --file "$2" --directory "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
		--transform='s,^\./,,' --exclude-vcs .
}

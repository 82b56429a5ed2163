// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// reinjected returns a new container of the broker. It keeps the changes that the API server and
// other webhooks make to every container of a pod:
//
//   - resources are set by LimitRanger and by autoscalers, and how to resize
//     them has a default; claims are not kept, because the driver of a claim
//     may mount anything,
//   - the image is pulled always where AlwaysPullImages says so, and
//     imagePullPolicy has a default if the template has none,
//   - mounts are added, of the service account's token for example, and are
//     harmless where they do not cover the broker's own files,
//   - environment variables are added, and are harmless unless they are the
//     broker's own, or the broker, Go's runtime, OpenSSL or the loader of
//     programs reads them,
//   - user and group are assigned where the template leaves that to the
//     platform.
func (r *rendering) reinjected(found corev1.Container) corev1.Container {
	made := r.container()
	if found.Resources.Requests != nil || found.Resources.Limits != nil {
		made.Resources = *found.Resources.DeepCopy()
		made.Resources.Claims = nil
	}
	made.ResizePolicy = found.ResizePolicy
	if made.ImagePullPolicy == "" || found.ImagePullPolicy == corev1.PullAlways {
		made.ImagePullPolicy = found.ImagePullPolicy
	}
	made.VolumeMounts = reinjectedMounts(found.VolumeMounts, made.VolumeMounts)
	made.Env = reinjectedVariables(found.Env, made.Env)
	if assigned := found.SecurityContext; assigned != nil && made.SecurityContext.RunAsUser == nil {
		made.SecurityContext.RunAsUser, made.SecurityContext.RunAsGroup = assigned.RunAsUser, assigned.RunAsGroup
	}
	return made
}

// reinjectedMounts returns the found mounts, with the mounts of the broker in the places of the
// same volumes. It keeps only harmless mounts of others.
func reinjectedMounts(found, own []corev1.VolumeMount) (mounts []corev1.VolumeMount) {
	own = slices.Clone(own)
	for _, mount := range found {
		if at := slices.IndexFunc(own, func(wanted corev1.VolumeMount) bool { return wanted.Name == mount.Name }); at >= 0 {
			mounts, own = append(mounts, own[at]), slices.Delete(own, at, at+1)
		} else if !contract.IsReservedVolume(mount.Name) && isHarmlessMount(mount.MountPath) {
			mounts = append(mounts, mount)
		}
	}
	return append(mounts, own...)
}

// reinjectedVariables does the same for environment variables. A variable may refer to variables
// before it. So if one of the broker's variables is new, all of them follow the others, in their
// order.
func reinjectedVariables(found, own []corev1.EnvVar) (variables []corev1.EnvVar) {
	names := func(variables []corev1.EnvVar) (names []string) {
		for _, variable := range variables {
			if slices.ContainsFunc(own, func(wanted corev1.EnvVar) bool { return wanted.Name == variable.Name }) {
				names = append(names, variable.Name)
			}
		}
		return names
	}
	hasPlaces := slices.Equal(names(found), names(own))
	for _, variable := range found {
		switch at := slices.IndexFunc(own, func(wanted corev1.EnvVar) bool { return wanted.Name == variable.Name }); {
		case at >= 0 && hasPlaces:
			variables = append(variables, own[at])
		case at < 0 && isHarmlessVariable(variable.Name):
			variables = append(variables, variable)
		}
	}
	if hasPlaces {
		return variables
	}
	return append(variables, own...)
}

// ownFiles are the files and directories in the broker's container that no mount may hide: its
// binary, profiles, keys, settings, token and sockets, and in the image with OpenSSL the libraries
// and what says which libraries are loaded.
var ownFiles = []string{
	contract.BrokerBinary, contract.ProfilesDir, contract.KeysDir, contract.SessionRedisDir, contract.KeyGatewayDir, contract.BrokerSocketDir,
	"/lib", "/lib64", "/usr/lib", "/etc/ld.so.preload", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/etc/ssl/fipsmodule.cnf",
}

// isHarmlessMount reports whether a mount hides nothing of ownFiles.
func isHarmlessMount(mountPath string) bool {
	at := inContainer(mountPath)
	for _, own := range ownFiles {
		if within(own, at) || within(at, own) {
			return false
		}
	}
	return true
}

// isHarmlessVariable reports whether an environment variable changes nothing in the broker, in Go's
// runtime and, in the image with OpenSSL, in its libraries and in which libraries are loaded. The
// variables of OpenTelemetry are not harmless, because they decide where the broker sends spans.
func isHarmlessVariable(name string) bool {
	return name != "GODEBUG" && !slices.ContainsFunc([]string{contract.BrokerVariablePrefix, "OTEL_", "LD_", "OPENSSL_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isRedirected reports whether a broker opens its status port, but the startup probe does not use
// that port. A mesh redirects HTTP probes to its proxy, which starts after the broker or waits
// for it. A probe inside the container is kept, because the probe of an earlier injection was
// redirected.
func isRedirected(broker corev1.Container) bool {
	port, probe := int32(contract.StatusPort(broker.Args)), broker.StartupProbe
	switch {
	case port == 0 || probe == nil:
		return false
	case probe.HTTPGet == nil:
		return probe.Exec != nil
	}
	return probe.HTTPGet.Path != contract.ReadyPath || probe.HTTPGet.Port.IntVal != port
}

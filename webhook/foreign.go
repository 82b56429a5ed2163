// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// differences names the fields in which a broker's container differs from what
// it should be, apart from what the API server and other webhooks do to every
// container of a pod:
//
//   - resources are set by LimitRanger and by autoscalers, and how to resize
//     them has a default; claims are set by nobody, and the driver behind one
//     may mount what it likes,
//   - the image is pulled always where AlwaysPullImages says so, and
//     imagePullPolicy has a default if the template has none,
//   - mounts are added, of the service account's token for example, and are
//     harmless where they do not cover the broker's own files,
//   - environment variables are added, and are harmless unless they are the
//     broker's own, or the broker or Go's runtime reads them,
//   - user and group are assigned where the template leaves that to the
//     platform,
//   - HTTP probes are redirected to a mesh's proxy.
//
// What is left has to be equal, field by field.
func differences(found, want corev1.Container) (fields []string) {
	found = *found.DeepCopy()
	claims := found.Resources.Claims
	found.Resources, found.ResizePolicy = want.Resources, want.ResizePolicy
	found.Resources.Claims = claims
	if want.ImagePullPolicy == "" || found.ImagePullPolicy == corev1.PullAlways {
		found.ImagePullPolicy = want.ImagePullPolicy
	}
	found.VolumeMounts = slices.DeleteFunc(found.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return !isReservedVolume(mount.Name) && isHarmlessMount(mount.MountPath)
	})
	found.Env = withoutHarmless(found.Env, want.Env)
	if want.SecurityContext.RunAsUser == nil && found.SecurityContext != nil {
		found.SecurityContext.RunAsUser, found.SecurityContext.RunAsGroup = nil, nil
	}
	if isRedirected(found.StartupProbe, want.StartupProbe) {
		found.StartupProbe = want.StartupProbe
	}

	foundFields, wantFields := reflect.ValueOf(found), reflect.ValueOf(want)
	for i := range foundFields.NumField() {
		if !equality.Semantic.DeepEqual(foundFields.Field(i).Interface(), wantFields.Field(i).Interface()) {
			name, _, _ := strings.Cut(foundFields.Type().Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
		}
	}
	return fields
}

// isHarmlessMount says whether a mount leaves the broker's binary, profiles and
// sockets what they are.
func isHarmlessMount(mountPath string) bool {
	at := inContainer(mountPath)
	for _, own := range []string{brokerBinary, profilesDir, keysDir, brokerSocketDir} {
		if within(own, at) || within(at, own) {
			return false
		}
	}
	return true
}

// isHarmlessVariable says whether neither the broker nor Go's runtime reads an
// environment variable in a way that changes what the broker does. Those of
// OpenTelemetry say where its spans go, and whether there are any.
func isHarmlessVariable(name string) bool {
	return name != "GODEBUG" && !strings.HasPrefix(name, "CRYPTO_BROKER_") && !strings.HasPrefix(name, "OTEL_")
}

// isRedirected says whether a probe asks by HTTP as often and as long as it
// should, but at another place. A mesh does this to all HTTP probes, and its
// proxy, which would answer, starts after the broker or waits for it.
func isRedirected(found, want *corev1.Probe) bool {
	if found == nil || found.HTTPGet == nil || equality.Semantic.DeepEqual(found, want) {
		return false
	}
	if found.Exec != nil || found.TCPSocket != nil || found.GRPC != nil {
		return false
	}
	elsewhere := found.DeepCopy()
	elsewhere.ProbeHandler = want.ProbeHandler
	elsewhere.TimeoutSeconds = want.TimeoutSeconds
	return equality.Semantic.DeepEqual(elsewhere, want)
}

// withoutHarmless leaves of a broker's environment variables those that it has to
// have and those that it must not have.
func withoutHarmless(found, want []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(found, func(variable corev1.EnvVar) bool {
		return isHarmlessVariable(variable.Name) && !slices.ContainsFunc(want, func(own corev1.EnvVar) bool { return own.Name == variable.Name })
	})
}

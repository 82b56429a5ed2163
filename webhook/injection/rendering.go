// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// brokerUserID is the user and group that the broker runs as, if the platform
// does not assign one.
const brokerUserID = 65532

// socketVolumeSize has room for the sockets, and for a copy of the profiles
// (at most 1 MiB) while the next is being written.
var socketVolumeSize = resource.MustParse("4Mi")

// instance is the variable that tells the broker the UID of its pod.
var instance = corev1.EnvVar{
	Name:      contract.InstanceVariable,
	ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"}},
}

// logLevelFile is the variable that names the file with the annotation of the log level. It is
// no argument, because a broker that does not know it would not start.
var logLevelFile = corev1.EnvVar{Name: contract.LogLevelFileVariable, Value: path.Join(contract.ProfilesDir, contract.LogLevelFile)}

// rendering has all inputs of the broker's part of one pod. Equal renderings make equal parts.
// The parts have all defaults of the API server, so they are still equal after the API server has
// stored them.
type rendering struct {
	// template is the operator's template with the values that the pod asks for.
	template template.Template

	// options are the requests of the pod's annotations.
	options podOptions

	// stamp is the stamp of the operator's template, without the values that the pod asks for.
	stamp string

	// callers are the containers with a socket, in the order of the pod.
	callers []string

	// statusPort is false if the broker may not open a port.
	statusPort bool

	// formerPort is the status port of a broker that the pod already had, or 0.
	formerPort int32

	// execProbe makes the startup probe run inside the container although
	// there is a status port.
	execProbe bool

	// shared is set if containers of the pod see the processes of each other.
	shared bool

	// snapshot is set if the pod carries the snapshot of the profiles.
	snapshot bool
}

// container is the broker's container.
func (r rendering) container() corev1.Container {
	container := corev1.Container{
		Name:            contract.BrokerContainer,
		Image:           r.template.Image,
		ImagePullPolicy: r.template.PullPolicy,
		Args: append(append(r.firstArguments(),
			contract.Argument(contract.CallersFlag, strings.Join(r.callers, ",")),
			contract.Argument(contract.SocketGroupFlag, strconv.FormatInt(r.template.SocketGroup, 10)),
		), r.template.Seal.PodArguments()...),
		Env:           slices.Concat([]corev1.EnvVar{instance}, r.template.Traces.Environment(), r.template.Audit.Environment(), []corev1.EnvVar{logLevelFile}),
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		VolumeMounts: []corev1.VolumeMount{
			{Name: contract.SocketVolume, MountPath: contract.BrokerSocketDir},
			{Name: contract.ProfilesVolume, MountPath: contract.ProfilesDir, ReadOnly: true},
		},
		Resources:                *r.template.Resources.DeepCopy(),
		StartupProbe:             r.startupProbe(),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			Privileged:               ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			RunAsNonRoot:             ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if !r.template.NamespaceUserIDs {
		container.SecurityContext.RunAsUser = ptr.To[int64](brokerUserID)
		container.SecurityContext.RunAsGroup = ptr.To[int64](brokerUserID)
	}
	if r.statusPort {
		container.Args = append(container.Args, contract.Argument(contract.StatusAddressFlag, contract.StatusAddress(r.template.StatusPort)))
		container.Ports = []corev1.ContainerPort{{
			Name:          contract.StatusPortName,
			ContainerPort: r.template.StatusPort,
			Protocol:      corev1.ProtocolTCP,
		}}
	}
	if listen, _, asked := r.options.sessionPorts(); asked {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: contract.SessionPortName, ContainerPort: listen, Protocol: corev1.ProtocolTCP})
	}
	container.Args = append(container.Args, r.optionArguments()...)
	if r.template.RequireFIPS {
		container.Args = append(container.Args, contract.Switch(contract.RequireFIPSFlag))
	}
	if allowed := r.options.allowed(r.callers); allowed != "" {
		container.Args = append(container.Args, contract.Argument(contract.CallerProfilesFlag, allowed))
	}
	if len(r.options.keys) > 0 {
		container.Args = append(container.Args, contract.Argument(contract.KeysDirFlag, contract.KeysDir))
		for i, secret := range r.options.keys {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
				Name: keysVolume(i), MountPath: path.Join(contract.KeysDir, secret), ReadOnly: true,
			})
		}
	}
	if r.options.sessionRedis != "" {
		container.Args = append(container.Args, contract.Argument(contract.SessionRedisDirFlag, contract.SessionRedisDir))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: contract.SessionRedisVolume, MountPath: contract.SessionRedisDir, ReadOnly: true,
		})
	}
	if r.template.KeyGateway != "" {
		container.Args = append(container.Args, keyGatewayArguments(r.template.KeyGateway, r.template.BrokerCertificates)...)
		container.VolumeMounts = append(container.VolumeMounts, keyGatewayMount())
	}
	if r.shared {
		container.Args = append(container.Args, contract.Switch(contract.SharedIdentityFlag))
	}
	return container
}

// firstArguments returns the arguments that are the same in all pods.
func (r rendering) firstArguments() []string {
	return append([]string{
		contract.Argument(contract.ProfilesDirFlag, contract.ProfilesDir),
		contract.Argument(contract.SocketDirFlag, contract.BrokerSocketDir),
	}, r.template.Seal.CommonArguments()...)
}

// startupProbe returns a probe that succeeds once the broker serves a set of profiles. It runs
// every second, because the pod's other containers wait for it. It may fail for ten minutes,
// because a restart of the broker would not bring the first profile sooner.
func (r rendering) startupProbe() *corev1.Probe {
	probe := &corev1.Probe{
		PeriodSeconds:    1,
		SuccessThreshold: 1,
		FailureThreshold: 600,
		TimeoutSeconds:   1,
	}
	if r.statusPort && !r.execProbe {
		probe.HTTPGet = &corev1.HTTPGetAction{
			Path:   contract.ReadyPath,
			Port:   intstr.FromInt32(r.template.StatusPort),
			Scheme: corev1.URISchemeHTTP,
		}
		return probe
	}
	// Starting a process takes longer than answering a request.
	probe.TimeoutSeconds = 5
	probe.Exec = &corev1.ExecAction{Command: []string{
		contract.BrokerBinary, "health", "--socket", path.Join(contract.BrokerSocketDir, r.callers[0], contract.SocketFile),
	}}
	return probe
}

// mount returns the mount of a container with a socket: its own directory, read-only.
// The container can connect to the socket in the directory, and can't replace it.
func (r rendering) mount(container string) corev1.VolumeMount {
	return corev1.VolumeMount{
		Name:      contract.SocketVolume,
		MountPath: r.options.socketDir,
		SubPath:   container,
		ReadOnly:  true,
	}
}

// volumes returns the volume of the sockets and the volume of the profiles.
func (r rendering) volumes() (socket, profiles corev1.Volume) {
	socket = corev1.Volume{
		Name: contract.SocketVolume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium:    corev1.StorageMediumMemory,
			SizeLimit: ptr.To(socketVolumeSize.DeepCopy()),
		}},
	}
	// A later source takes precedence, so the snapshot is used only until the ConfigMap exists.
	// Every key of the ConfigMap becomes a file.
	files := []corev1.DownwardAPIVolumeFile{fileOf(contract.LogLevelFile, contract.LogLevelAnnotation)}
	if r.snapshot {
		files = append(files, fileOf(profile.FileName, contract.ProfilesSnapshotAnnotation))
		if len(r.template.Seal.Keys) > 0 {
			files = append(files, fileOf(signed.FileName, contract.ProfilesSnapshotSignatureAnnotation))
		}
	}
	sources := []corev1.VolumeProjection{
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ProfilesConfigMap},
			Optional:             ptr.To(true),
		}},
	}
	profiles = corev1.Volume{
		Name: contract.ProfilesVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: sources,
			// The broker owns none of the files, so everyone has to read them.
			DefaultMode: ptr.To[int32](0o444),
		}},
	}
	return socket, profiles
}

// fileOf returns a file with the value of an annotation of the pod.
func fileOf(name, annotation string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{
		Path:     name,
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']"},
	}
}

// secretVolumes returns the volumes of the Secrets with keys and with the settings for
// sessions in Redis. A Secret that does not exist keeps the pod from starting.
func (r rendering) secretVolumes() []corev1.Volume {
	var volumes []corev1.Volume
	for i, secret := range r.options.keys {
		volumes = append(volumes, secretVolume(keysVolume(i), secret))
	}
	if r.options.sessionRedis != "" {
		volumes = append(volumes, secretVolume(contract.SessionRedisVolume, r.options.sessionRedis))
	}
	return volumes
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: secret},
			}}},
			DefaultMode: ptr.To[int32](0o444),
		}},
	}
}

func keysVolume(i int) string { return contract.KeysVolumePrefix + strconv.Itoa(i+1) }

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// offline has the settings of commands that work without a cluster.
type offline struct {
	files    *[]string
	labelled bool
	// namespace is the namespace of objects without a namespace.
	namespace string
	template  template.Template
}

// flags adds flags for the settings of an operator, which commands without a cluster cannot read.
func (o *offline) flags(cmd *cobra.Command) {
	o.files = manifest.FilesFlag(cmd)
	o.labelledFlag(cmd)
	flags := cmd.Flags()
	o.template = defaultTemplate()
	flags.StringVar(&o.template.Image, "broker-image", o.template.Image, "`image` of brokers, as set for the operator")
	flags.StringSliceVar(&o.template.AllowedImages, "allowed-broker-images", nil, "further `images` that pods may choose")
	flags.Int32Var(&o.template.StatusPort, "broker-status-port", o.template.StatusPort, "status `port` of brokers")
	flags.Int64Var(&o.template.SocketGroup, "socket-group", o.template.SocketGroup, "`id` of the group that owns the sockets")
	flags.StringVar(&o.template.LogLevel, "broker-log-level", o.template.LogLevel, "log `level` of brokers")
	flags.BoolVar(&o.template.RequireFIPS, "broker-require-fips", false, "inject brokers that refuse operations that FIPS 140-3 does not approve")
}

// ofNoCluster are the flags that have no meaning for a command with a cluster.
var ofNoCluster = []string{
	"broker-image", "allowed-broker-images", "broker-status-port", "socket-group", "broker-log-level", "broker-require-fips", "namespace-labelled",
}

func (o *offline) namespaceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", metav1.NamespaceDefault, "`namespace` of objects that name none")
}

func (o *offline) labelledFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.labelled, "namespace-labelled", false, "treat every namespace as labelled cryptobroker.io/injection=enabled; not needed for namespaces whose manifests are given")
}

// defaultTemplate returns the template of an operator with default settings.
func defaultTemplate() template.Template {
	return template.Template{
		Image:       "ghcr.io/crypto-broker/broker:" + imageTag(),
		PullPolicy:  corev1.PullIfNotPresent,
		StatusPort:  contract.DefaultStatusPort,
		SocketGroup: 60471,
		LogLevel:    "info",
		Version:     program.Version(version),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
	}
}

// imageTag returns the tag of the broker's image of this program's release.
func imageTag() string {
	tag := strings.TrimPrefix(program.Version(version), "v")
	if strings.ContainsAny(tag, "()+ ") || tag == "" {
		return "latest"
	}
	return tag
}

// wants reports whether a pod of a manifest would get a broker, and otherwise why not.
func (o *offline) wants(p *manifest.PodTemplate, labelled map[string]bool) (injection.Decision, error) {
	if coverage.Excluded(p.Namespace) {
		return injection.Decision{Reason: "excluded namespace"}, nil
	}
	return injection.Decide(p.Pod, o.labelled || labelled[p.Namespace])
}

func newInject(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inject -f FILE...",
		Short: "Print manifests with brokers in their pods: a preview, or what a cluster would inject",
		Long: `Prints manifests with a broker in each pod that would get one. The output is to look at, and to test policies:
apply the original.

Without a cluster the output is a preview, with the default settings of an operator or the settings of the flags.
It has neither the keys that sign sets of profiles nor the lowest revision, because only the operator knows them.
With --from-cluster each pod is created as a dry run, and the output has what admission injects, by webhook or by
policy. That needs the right to create pods, and the namespace and the service account in the cluster.

It reads Pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs, PodTemplates and
ReplicationControllers, also in Lists. It prints other documents unchanged. The same input gives the same output.
Warnings and reasons go to standard error.`,
		Example: `  ` + name + ` inject -f deployment.yaml | less
  ` + name + ` inject -f deployment.yaml --from-cluster -n shop | diff -u deployment.yaml -
  kustomize build overlays/production | ` + name + ` inject -f - --broker-image registry.example/broker:1.0.0`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	var o offline
	o.flags(cmd)
	fromCluster := cmd.Flags().Bool("from-cluster", false, "ask the cluster what it injects into each pod, by creating the pod as a dry run")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		documents, err := manifest.ReadObjects(*o.files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if *fromCluster {
			for _, flag := range ofNoCluster {
				if cmd.Flags().Changed(flag) {
					return program.Usagef("--%s is for a preview without a cluster, and --from-cluster asks one: give one of them", flag)
				}
			}
			warnings := &dryrun.Warnings{}
			client, namespace, err := cluster.connectWith(warnings)
			if err != nil {
				return err
			}
			try := dryrun.Trial{Client: client, Warnings: warnings}
			return inject(cmd, documents, namespace, commentAdmitted, func(p *manifest.PodTemplate) ([]string, bool, error) { return try.Inject(cmd.Context(), p) })
		}
		if o.namespace = cluster.overrides.Context.Namespace; o.namespace == "" {
			o.namespace = metav1.NamespaceDefault
		}
		labelled := manifest.LabelledNamespaces(documents)
		return inject(cmd, documents, o.namespace, commentPreview, func(p *manifest.PodTemplate) ([]string, bool, error) { return o.inject(p, labelled) })
	}
	return cmd
}

// The output has comments above a document that was changed.
const (
	commentPreview  = "made without a cluster, so without the keys and the revision that only the operator knows: apply the original"
	commentAdmitted = "made with the changes of the cluster's admission: apply the original"
)

// inject prints documents with brokers in their pods. It prints nothing if a pod is
// refused.
func inject(cmd *cobra.Command, documents []manifest.Document, namespace, comment string, into func(*manifest.PodTemplate) (said []string, added bool, err error)) error {
	var out bytes.Buffer
	refused, any := false, false
	for i, d := range documents {
		changed := false
		for _, item := range d.Items() {
			p, err := item.Template(namespace)
			if p == nil && err == nil {
				continue
			}
			var said []string
			injected := false
			if err == nil {
				said, injected, err = into(p)
			}
			var refusal *injection.Refusal
			switch {
			case errors.As(err, &refusal):
				refused = true
				for _, problem := range refusal.Problems {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", item.Place, item.Name(), problem)
				}
			case err != nil:
				return fmt.Errorf("%s: %s: %w", item.Place, item.Name(), err)
			}
			for _, line := range said {
				fmt.Fprintf(cmd.ErrOrStderr(), noteMark+"%s: %s: %s\n", item.Place, item.Name(), line)
			}
			changed = changed || injected
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		if changed {
			any = true
			fmt.Fprintf(&out, "# %s inject: %s\n", name, comment)
		}
		if err := d.Write(&out, changed); err != nil {
			return err
		}
	}
	if refused {
		return errFound // so that the command prints no manifest that would be refused
	}
	if any {
		fmt.Fprintln(cmd.ErrOrStderr(), noteMark+comment)
	}
	_, err := cmd.OutOrStdout().Write(out.Bytes())
	return err
}

// noProfiles is the beginning of a warning that has no meaning without a cluster.
const noProfiles = "namespace "

// inject puts a broker into the pod if the pod would get one, and returns notes.
func (o *offline) inject(p *manifest.PodTemplate, labelled map[string]bool) (said []string, added bool, err error) {
	decision, err := o.wants(p, labelled)
	if err != nil {
		return nil, false, err
	}
	if !decision.Inject {
		return []string{"gets no broker: " + decision.Reason}, false, nil
	}
	warnings, err := p.Inject(o.template)
	if err != nil {
		return nil, false, err
	}
	for _, warning := range warnings {
		if !strings.HasPrefix(warning, noProfiles) {
			said = append(said, warning)
		}
	}
	return said, true, nil
}

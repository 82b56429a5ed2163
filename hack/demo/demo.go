// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr/funcr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

//go:embed manifests
var manifests embed.FS

const (
	namespace      = "crypto-broker-demo"
	clusterProfile = "crypto-broker-demo-fips"
	// firstAlgorithm and secondAlgorithm are the algorithms of manifests/profiles.yaml and changed-profile.yaml.
	firstAlgorithm, secondAlgorithm = "sha3-512", "sha-512"
	// placeholder is the application's image in manifests/app.yaml.
	placeholder = "localhost/crypto-broker/demo-app:demo"
	// target is the time within which a reply should show a changed profile.
	target = time.Second
)

// demo is one run of the demo.
type demo struct {
	options
	*output
	cluster   *environment.Cluster
	images    *environment.Images
	client    client.WithWatch
	clientset kubernetes.Interface
}

func (d *demo) run(ctx context.Context) error {
	for _, each := range []func(context.Context) error{d.bringUp, d.install, d.clean, d.show} {
		if err := each(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bringUp starts the cluster, builds the images and loads them into the cluster.
func (d *demo) bringUp(ctx context.Context) error {
	if d.cluster.Local() {
		d.step("Starting the cluster %q, unless it runs", d.cluster.Name)
		if err := d.cluster.UpWithoutDNS(ctx, d); err != nil {
			return err
		}
	} else {
		d.step("Using the cluster of KUBECONFIG=%s", d.cluster.Kubeconfig)
		helm, err := environment.NewHelm(ctx, d, d.cluster)
		if err != nil {
			return err
		}
		if err := refuseForeignRelease(ctx, d.cluster, helm); err != nil {
			return err
		}
	}
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return err
	}
	d.step("Building the images")
	push := d.registry
	if d.cluster.Local() {
		push = ""
	}
	d.images, err = environment.BuildImages(ctx, d, environment.ImageOptions{
		Out: filepath.Join(cache, "images"), Only: []string{"broker", "operator", "demo-app"}, Push: push,
	})
	if err != nil {
		return err
	}
	switch {
	case d.cluster.Local():
		d.step("Loading the images into the cluster")
		err = d.cluster.Load(ctx, d, d.images.Archives...)
	case d.load != "":
		d.step("Loading the images with: %s", d.load)
		command := append(strings.Fields(d.load), d.images.Archives...)
		_, err = environment.Command(ctx, "", d, command[0], command[1:]...)
	}
	if err != nil {
		return err
	}
	return d.connect()
}

// connect creates the clients of the cluster.
func (d *demo) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", d.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	log.SetLogger(funcr.New(func(prefix, arguments string) { d.line("%s %s", prefix, arguments) }, funcr.Options{}))
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if d.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	d.clientset, err = kubernetes.NewForConfig(config)
	return err
}

func (d *demo) install(ctx context.Context) error {
	helm, err := environment.NewHelm(ctx, d, d.cluster)
	if err != nil {
		return err
	}
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	d.step("Installing the operator with helm, until it is ready")
	arguments := append(environment.InstallArguments(environment.Chart(repository), d.images), "--labels", ownRelease)
	if _, err := helm.Run(ctx, arguments...); err != nil {
		said, more := d.cluster.KubectlRun(ctx, nil, "-n", environment.Namespace, "get", "pods,events")
		return errors.Join(err, more, errors.New(said))
	}
	return nil
}

// clean removes what an earlier demo left in the cluster.
func (d *demo) clean(ctx context.Context) error {
	var left corev1.Namespace
	err := d.client.Get(ctx, client.ObjectKey{Name: namespace}, &left)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		d.step("Removing the earlier demo (about 10 s)")
	}
	return removeDemo(ctx, d.cluster)
}

func removeDemo(ctx context.Context, cluster *environment.Cluster) error {
	objects := []string{"namespace/" + namespace}
	kind, err := cluster.KubectlRun(ctx, nil, "get", "crd", "clustercryptoprofiles.cryptobroker.io", "--ignore-not-found", "-o", "name")
	if err != nil {
		return err
	}
	if kind != "" { // kubectl cannot remove objects of a kind that does not exist
		objects = append(objects, "clustercryptoprofile/"+clusterProfile)
	}
	_, err = cluster.KubectlRun(ctx, nil, append([]string{"delete", "--ignore-not-found", "--timeout=2m"}, objects...)...)
	return err
}

// apply runs kubectl apply and returns when it began.
func (d *demo) apply(ctx context.Context, name string) (began time.Time, err error) {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return began, err
	}
	manifest := strings.ReplaceAll(string(content), placeholder, d.images.Image("demo-app"))
	began = time.Now()
	said, err := d.cluster.KubectlRun(ctx, strings.NewReader(manifest), "apply", "-f", "-")
	for line := range strings.Lines(said) {
		d.line("%s", strings.TrimSpace(line))
	}
	return began, err
}

// show lets the application make calls, changes the profile, and prints when each step happened.
func (d *demo) show(ctx context.Context) error {
	d.step("kubectl apply: a namespace and two profiles")
	for _, each := range []string{"namespace.yaml", "profiles.yaml"} {
		if _, err := d.apply(ctx, each); err != nil {
			return err
		}
	}
	admitted, err := watchFor(ctx, d.client, &corev1.PodList{}, namespace,
		func(pod *corev1.Pod) bool { return pod.Labels["app"] == "app" })
	if err != nil {
		return err
	}
	completed, err := watchFor(ctx, d.client, &batchv1.JobList{}, namespace,
		func(job *batchv1.Job) bool { return job.Status.CompletionTime != nil || job.Status.Failed > 0 })
	if err != nil {
		return err
	}
	d.step(`kubectl apply: a Deployment and a Job with the annotation cryptobroker.io/inject: "true"`)
	began, err := d.apply(ctx, "app.yaml")
	if err != nil {
		return err
	}
	pod, err := await(ctx, "the application's pod is admitted", time.Minute, admitted)
	if err != nil {
		return err
	}
	first, err := d.awaitStats(ctx, pod.object.GetName(), "the application has its first hash", 2*time.Minute,
		func(s *stats.Stats) bool { return s.FirstHash != nil })
	if err != nil {
		return err
	}
	serving, err := d.servingSince(ctx, pod.object.GetName())
	if err != nil {
		return err
	}
	job, err := await(ctx, "the Job is complete", 2*time.Minute, completed)
	if err != nil {
		return err
	}
	if finished := job.object.(*batchv1.Job); finished.Status.CompletionTime == nil {
		return errors.New("the Job failed; see: kubectl -n " + namespace + " logs job/job --all-containers")
	}
	d.table([]event{
		{what: "Deployment and Job applied", at: began},
		{what: "pod admitted, with a broker in it", at: pod.at, after: began, of: "apply"},
		{what: "broker serving", at: serving, after: pod.at, of: "admission"},
		{what: "first hash, with " + first.Observed[0].Algorithm, at: *first.FirstHash, after: pod.at, of: "admission"},
		{what: "Job completed, 500 calls made", at: job.at, after: began, of: "apply"},
	})
	if err := d.change(ctx, pod.object.GetName()); err != nil {
		return err
	}
	d.lookAround(pod.object.GetName())
	return nil
}

// change applies the changed profile while the application makes calls, and prints the result.
func (d *demo) change(ctx context.Context, pod string) error {
	var before v1alpha1.CryptoProfile
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &before); err != nil {
		return err
	}
	stored, err := watchFor(ctx, d.client, &v1alpha1.CryptoProfileList{}, namespace,
		func(profile *v1alpha1.CryptoProfile) bool { return profile.Generation > before.Generation })
	if err != nil {
		return err
	}
	d.step("kubectl apply: the profile with %s in place of %s, while the application calls", secondAlgorithm, firstAlgorithm)
	began, err := d.apply(ctx, "changed-profile.yaml")
	if err != nil {
		return err
	}
	profile, err := await(ctx, "the changed profile is stored", time.Minute, stored)
	if err != nil {
		return err
	}
	var seen time.Time
	if _, err = d.awaitStats(ctx, pod, "the application sees "+secondAlgorithm+" in a reply", 3*time.Minute,
		func(s *stats.Stats) (ok bool) { seen, ok = s.Seen(secondAlgorithm, began); return ok }); err != nil {
		return err
	}
	verdict := "target 1 s: met"
	if seen.Sub(profile.at) > target {
		verdict = "target 1 s: missed"
	}
	final, err := d.awaitConfirmed(ctx, pod)
	if err != nil {
		return err
	}
	d.table([]event{
		{what: "kubectl apply started", at: began},
		{what: "profile applied (stored by the API server)", at: profile.at, after: began, of: "the start of kubectl"},
		{what: "new algorithm seen in a reply", at: seen, after: profile.at, of: "the profile was applied", note: verdict},
	})
	d.line("")
	d.line("%s%d calls made, %d failed, %d repeated%s; the slowest took %.0f ms (target: none failed)", d.bold, final.Calls,
		final.Failed, final.Retries, d.normal, final.SlowestMilliseconds)
	for _, each := range final.Errors {
		d.line("  %s", each)
	}
	if final.Failed > 0 || final.HealthFailed > 0 {
		return fmt.Errorf("%d calls and %d health checks failed", final.Failed, final.HealthFailed)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// Programs in the folder that build fills.
const (
	operatorProgram = "operator"
	helmProgram     = "helm"
)

// tokenLifetime is longer than any measurement.
const tokenLifetime = 24 * time.Hour

// installation is the chart in the cluster: everything but running pods.
type installation struct {
	deployment *appsv1.Deployment
	kubeconfig string // path of a file with the token of the operator's account
	relay      net.Listener
}

// install installs the chart with its catalogue, so that namespaces have sets of a usual
// size, and makes the webhooks reachable.
func install(ctx context.Context, plane *controlPlane, clients *kubernetes.Clientset, dir, programs string) (*installation, error) {
	runner.Progress("installs the chart")
	root, err := environment.Repository()
	if err != nil {
		return nil, err
	}
	if _, err := environment.Command(ctx, "", nil, filepath.Join(programs, helmProgram), "install", environment.Release, environment.Chart(root),
		"--kubeconfig", plane.kubeconfig, "--namespace", environment.Namespace, "--create-namespace", "--set", "catalogue.enabled=true"); err != nil {
		return nil, err
	}
	i := &installation{kubeconfig: filepath.Join(dir, "operator.kubeconfig")}
	if i.deployment, err = clients.AppsV1().Deployments(environment.Namespace).Get(ctx, environment.Release, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if err := i.writeKubeconfig(ctx, plane.config, clients); err != nil {
		return nil, err
	}
	services, err := clients.CoreV1().Services(environment.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(services.Items) != 1 {
		return nil, fmt.Errorf("the chart has %d Services, expected only the Service of the webhooks", len(services.Items))
	}
	return i, i.listen(ctx, &services.Items[0])
}

// writeKubeconfig writes the credentials of the operator's account, which has the rights
// of the chart and no others.
func (i *installation) writeKubeconfig(ctx context.Context, config *rest.Config, clients *kubernetes.Clientset) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds()))}}
	token, err := clients.CoreV1().ServiceAccounts(environment.Namespace).CreateToken(ctx, i.deployment.Spec.Template.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("get a token of the operator's account: %w", err)
	}
	all := api.NewConfig()
	all.Clusters["scale"] = &api.Cluster{Server: rest.CopyConfig(config).Host, CertificateAuthorityData: config.CAData}
	all.AuthInfos["scale"] = &api.AuthInfo{Token: token.Status.Token}
	all.Contexts["scale"] = &api.Context{Cluster: "scale", AuthInfo: "scale"}
	all.CurrentContext = "scale"
	return clientcmd.WriteToFile(*all, i.kubeconfig)
}

// container is the operator's container.
func (i *installation) container() *corev1.Container {
	return &i.deployment.Spec.Template.Spec.Containers[0]
}

// port returns the number of a port of the operator's container.
func (i *installation) port(name string) (string, error) {
	for _, port := range i.container().Ports {
		if port.Name == name {
			return fmt.Sprint(port.ContainerPort), nil
		}
	}
	return "", fmt.Errorf("the operator's container has no port %q", name)
}

// variables returns the environment of the operator's container.
func (i *installation) variables() []string {
	variables := []string{"KUBECONFIG=" + i.kubeconfig}
	for _, v := range i.container().Env {
		value := v.Value
		if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
			value = map[string]string{"metadata.namespace": environment.Namespace, "metadata.name": environment.Release + "-0"}[v.ValueFrom.FieldRef.FieldPath]
		}
		variables = append(variables, v.Name+"="+value)
	}
	return variables
}

// listen connects the address of the Service with the operator, as kube-proxy does.
func (i *installation) listen(ctx context.Context, service *corev1.Service) error {
	port, err := i.port(service.Spec.Ports[0].TargetPort.StrVal)
	if err != nil {
		return err
	}
	from := net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port))
	if i.relay, err = (&net.ListenConfig{}).Listen(ctx, "tcp", from); err != nil {
		return fmt.Errorf("listen at the address of the webhooks' Service: %w", err)
	}
	go loopback.Relay(i.relay, net.JoinHostPort("127.0.0.1", port))
	return nil
}

func (i *installation) stop() error {
	return errors.Join(i.relay.Close(), os.Remove(i.kubeconfig))
}

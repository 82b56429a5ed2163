// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// injected is a running pod with a broker, as the API server has it.
func injectedPod(change ...func(*corev1.Pod)) *corev1.Pod {
	always, started := corev1.ContainerRestartPolicyAlways, true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "app", Namespace: "shop", UID: "1", ResourceVersion: "7",
			Labels: map[string]string{"app": "app"},
			Annotations: map[string]string{
				contract.InjectAnnotation:           "true",
				contract.InjectedAnnotation:         "v1/0123",
				contract.ProfilesDigestAnnotation:   "sha256:00.1",
				contract.ProfilesSnapshotAnnotation: strings.Repeat("x", 16<<10),
				"example.com/other":                 "x",
			},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "app"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "x"}},
		},
		Spec: corev1.PodSpec{
			NodeName:   "node",
			Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "SECRET", Value: "x"}}}},
			InitContainers: []corev1.Container{
				{Name: contract.BrokerContainer, Image: "broker", RestartPolicy: &always, Args: []string{"--socket-dir=/s", "--status-address=:9470"}, Env: []corev1.EnvVar{{Name: "X"}}},
				{Name: "init"},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.9", HostIP: "192.168.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady}},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "init"},
				{Name: contract.BrokerContainer, ContainerID: "c://1", Started: &started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch)}}},
			},
		},
	}
	for _, change := range change {
		change(p)
	}
	return p
}

func TestStrippingKeepsWhereAKeyGatewayOrAKeyAccessServiceIsAsked(t *testing.T) {
	for _, component := range []string{contract.KeyGatewayComponent, contract.KeyAccessComponent} {
		ports := []corev1.ContainerPort{{Name: contract.KeyGatewayStatusPortName, ContainerPort: 8081}}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "gateway", Namespace: "operators", Labels: map[string]string{contract.ComponentLabel: component, "app": "x"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Image: "x", Ports: ports}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
		}
		stripped, err := StripPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		want := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "gateway", Namespace: "operators", Labels: map[string]string{contract.ComponentLabel: component}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Ports: ports}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
		}
		if difference := cmp.Diff(want, stripped); difference != "" {
			t.Error(difference)
		}
		again, err := StripPod(stripped)
		if err != nil {
			t.Fatal(err)
		}
		if difference := cmp.Diff(want, again); difference != "" {
			t.Error("stripped twice: " + difference)
		}
	}
}

func TestStrippingKeepsWhatIsReadAndNothingElse(t *testing.T) {
	full := injectedPod()
	before, _ := view(full)
	out, err := StripPod(full)
	if err != nil {
		t.Fatal(err)
	}
	stripped := out.(*corev1.Pod)
	after, has := view(stripped)
	if !has || before != after {
		t.Errorf("the view of a stripped pod is %+v, of the full one %+v", after, before)
	}
	if stripped.UID != "1" || stripped.ResourceVersion != "7" || stripped.Spec.NodeName != "node" || len(stripped.OwnerReferences) != 1 {
		t.Errorf("found %+v", stripped)
	}
	text := stripped.String()
	for _, dropped := range []string{"SECRET", "example.com/other", contract.ProfilesSnapshotAnnotation, "ManagedFieldsEntry", "PodReady", "\"init\""} {
		if strings.Contains(text, dropped) {
			t.Errorf("%s was kept: %s", dropped, text)
		}
	}
	if full.Annotations[contract.ProfilesSnapshotAnnotation] == "" || len(full.Spec.Containers) != 1 {
		t.Error("the original was changed")
	}
	again, err := StripPod(stripped)
	if diff := cmp.Diff(stripped, again); err != nil || diff != "" {
		t.Errorf("stripping twice differs from once: %v %s", err, diff)
	}
}

func TestOfAPodWithoutABrokerIsKeptWhetherItShouldHaveOne(t *testing.T) {
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-1", UID: "5", Controller: new(true)}
	out, err := StripPod(injectedPod(func(p *corev1.Pod) {
		p.Spec.InitContainers = p.Spec.InitContainers[1:]
		p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows", "disk": "fast"}
		p.Annotations = map[string]string{contract.InjectAnnotation: "true", "example.com/other": "x"}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other"}, set}
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "app", Namespace: "shop", UID: "1", ResourceVersion: "7",
			Annotations:     map[string]string{contract.InjectAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{set},
		},
		Spec:   corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +found:\n%s", diff)
	}
}

func TestWhatIsNoPodPasses(t *testing.T) {
	in := &corev1.ConfigMap{}
	if out, err := StripPod(in); err != nil || out != any(in) {
		t.Errorf("found %v, %v", out, err)
	}
}

func TestTheViewOfAPod(t *testing.T) {
	port := func(args ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.InitContainers[0].Args = args }
	}
	tests := map[string]struct {
		change  func(*corev1.Pod)
		absent  bool
		address string
		running bool
		started bool
	}{
		"a running broker can be asked":                     {func(*corev1.Pod) {}, false, "10.0.0.9:9470", true, true},
		"an IPv6 address":                                   {func(p *corev1.Pod) { p.Status.PodIP = "fd00::9" }, false, "[fd00::9]:9470", true, true},
		"an argument in two parts":                          {port("--status-address", ":9999"), false, "10.0.0.9:9999", true, true},
		"the last of two arguments counts":                  {port("--status-address=:9999", "--status-address=:9998"), false, "10.0.0.9:9998", true, true},
		"no status port":                                    {port(), false, "", true, true},
		"a status port that is off":                         {port("--status-address="), false, "", true, true},
		"a status port on one address":                      {port("--status-address=127.0.0.1:9470"), false, "", true, true},
		"a status port below 1024":                          {port("--status-address=:80"), false, "", true, true},
		"a status port that is no number":                   {port("--status-address=:http"), false, "", true, true},
		"a status port beyond all ports":                    {port("--status-address=:65536"), false, "", true, true},
		"a pod on its node's network is never asked":        {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false, "", true, true},
		"a pod that claims its node's address is not asked": {func(p *corev1.Pod) { p.Status.PodIP = p.Status.HostIP }, false, "", true, true},
		"a pod without an address yet":                      {func(p *corev1.Pod) { p.Status.PodIP = "" }, false, "", true, true},
		"a broker that is not started":                      {func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].Started = nil }, false, "10.0.0.9:9470", true, false},
		"a broker that does not run":                        {func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].State.Running = nil }, false, "10.0.0.9:9470", false, false},
		"a pod that succeeded":                              {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true, "", false, false},
		"a pod that failed":                                 {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true, "", false, false},
		"a pod that is being deleted":                       {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, true, "", false, false},
		"a container of our name that is no sidecar":        {func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }, true, "", false, false},
		"a sidecar of another name":                         {func(p *corev1.Pod) { p.Spec.InitContainers[0].Name = "proxy" }, true, "", false, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			found, has := view(injectedPod(test.change))
			if has == test.absent {
				t.Fatalf("has a broker: %t", has)
			}
			if test.absent {
				return
			}
			address := ""
			if found.address.IsValid() {
				address = found.address.String()
			}
			if address != test.address || !found.running.IsZero() != test.running || found.started != test.started {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestEventsThatMeanNothingToBrokersAreLeftOut(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Pod)
		passes bool
	}{
		"our own annotation":      {func(p *corev1.Pod) { p.Annotations[contract.ProfilesDigestAnnotation] = "sha256:00.2" }, false},
		"a condition":             {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"a label":                 {func(p *corev1.Pod) { p.Labels = nil }, false},
		"a restart of the broker": {func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].ContainerID = "c://2" }, true},
		"an address":              {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.10" }, true},
		"the end":                 {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if passes := concernsBroker(injectedPod(), injectedPod(test.change)); passes != test.passes {
				t.Errorf("passes: %t", passes)
			}
		})
	}
}

func TestSummaries(t *testing.T) {
	var brokers []*broker
	add := func(change func(*simulation)) {
		s := simulate(serves("new"))
		s.setTarget(Target{Digest: "new", Written: epoch})
		change(s)
		brokers = append(brokers, s.broker)
	}
	add(func(s *simulation) { s.run(time.Second) })
	add(func(s *simulation) { s.answers = changesTo("old", "new", 700*time.Millisecond); s.run(time.Minute) })
	add(func(s *simulation) { s.answers = serves("old"); s.run(time.Minute) })
	add(func(s *simulation) { s.answers = silent; s.run(time.Minute) })
	add(func(s *simulation) { s.pod.started = false; s.pod.running = epoch.Add(-time.Hour) })
	add(func(s *simulation) { s.pod.running = time.Time{} })
	ns := namespace{target: Target{Digest: "new", Written: epoch}, brokers: map[string]*broker{}}
	for i, b := range brokers {
		ns.brokers[string(rune('a'+i))] = b
	}
	found := ns.summary(epoch.Add(time.Minute))
	if found.Took < 700*time.Millisecond || found.Took > 900*time.Millisecond {
		t.Errorf("took %s", found.Took)
	}
	found.Took = 0
	if want := (Summary{Digest: "new", Pods: 5, Updated: 2, Behind: 1, Unverified: 1, Waiting: 1}); found != want {
		t.Errorf("found %+v, expected %+v", found, want)
	}
}

func TestAProfileIsOutOfServiceSinceTheFirstBrokerTookItOut(t *testing.T) {
	ns := namespace{target: Target{Digest: "new", Written: epoch}, brokers: map[string]*broker{}}
	for name, since := range map[string]time.Time{"later": epoch.Add(time.Hour), "first": epoch, "never": {}} {
		answer := confirm.Answer{Digest: "new", Reason: string(directory.ProfilesRejected)}
		if !since.IsZero() {
			answer.Withdrawn[0] = confirm.Withdrawn{Profile: "Other", Since: epoch.Add(-time.Hour)}
			answer.Withdrawn[1] = confirm.Withdrawn{Profile: "P", Since: since}
		}
		s := simulate(func(time.Time) (confirm.Answer, error) { return answer, nil })
		s.setTarget(Target{Digest: "new", Written: epoch})
		s.run(time.Second)
		ns.brokers[name] = s.broker
	}
	now := epoch.Add(time.Minute)
	if found := ns.withdrawn(now)["P"]; !found.Equal(epoch) {
		t.Errorf("since %s, expected %s", found, epoch)
	}
	if found := ns.withdrawn(now)["Q"]; !found.IsZero() {
		t.Errorf("since %s, expected no time for a profile that no broker took out", found)
	}
}

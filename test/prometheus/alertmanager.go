// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// alertmanagerConfiguration shows alerts in the API and sends no notifications.
const alertmanagerConfiguration = `route: {receiver: nobody}
receivers: [{name: nobody}]
`

// Alertmanager is a running Alertmanager.
type Alertmanager struct{ *process }

// Alert is an alert that Alertmanager has.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// StartAlertmanager runs Alertmanager with its data and log in a folder, and waits until it is ready. It uses the program in PATH,
// or else the program of Debian's package, which it downloads and unpacks into the cache folder.
func StartAlertmanager(ctx context.Context, progress io.Writer, cache, folder string) (*Alertmanager, error) {
	file := filepath.Join(folder, "alertmanager.yaml")
	if err := os.WriteFile(file, []byte(alertmanagerConfiguration), 0o644); err != nil {
		return nil, err
	}
	arguments := []string{"--config.file=" + file, "--storage.path=" + filepath.Join(folder, "alertmanager"), "--cluster.listen-address="}
	const name = "prometheus-alertmanager"
	program, err := exec.LookPath(name)
	if err != nil {
		unpacked, err := unpack(ctx, progress, cache, name)
		if err != nil {
			return nil, err
		}
		// Debian's Alertmanager reads its templates below /usr/share, whatever its configuration says. So it runs in a mount
		// namespace in which this folder is the folder of the package. That needs root, as the cluster does.
		arguments = append([]string{
			"--mount", "sh", "-c", `mount --bind "$1" /usr/share && shift && exec "$@"`, "sh",
			filepath.Join(unpacked, "usr", "share"), filepath.Join(unpacked, "usr", "bin", name),
		}, arguments...)
		program = "unshare"
	}
	p, err := startProcess(ctx, "alertmanager", program, folder, arguments...)
	if err != nil {
		return nil, err
	}
	return &Alertmanager{p}, nil
}

// Alerts returns the alerts that fire.
func (a *Alertmanager) Alerts(ctx context.Context) ([]Alert, error) {
	var alerts []Alert
	err := a.get(ctx, "/api/v2/alerts?active=true", &alerts)
	return alerts, err
}

// Stop ends Alertmanager and waits until it has ended.
func (a *Alertmanager) Stop() error { return a.stop() }

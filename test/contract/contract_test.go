// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newDriver starts a driver for the broker at a socket.
type newDriver func(socket string) (driver, error)

// withoutExchange ends the name of a driver that makes unary calls.
const withoutExchange = " without Exchange"

// drivers returns the drivers of the wire, and of released clients, and for each client of this repository one
// with Exchange and one without.
func drivers(t *testing.T) map[string]newDriver {
	t.Helper()
	all := map[string]newDriver{}
	for _, g := range []generation{v0, v1, exchange} {
		all["the wire "+string(g)] = func(socket string) (driver, error) { return newWire(socket, g) }
	}
	for name, path := range clientPrograms(t, ".") {
		all[name] = func(socket string) (driver, error) { return startProgram(path, socket) }
		all[name+withoutExchange] = func(socket string) (driver, error) { return startProgram(path, socket, "--unary") }
	}
	released, err := filepath.Glob("released/*/run")
	if err != nil || len(released) == 0 {
		t.Fatalf("no released clients: %v", err)
	}
	for _, path := range released {
		all["released "+filepath.Base(filepath.Dir(path))] = func(socket string) (driver, error) { return startProgram("./"+path, socket) }
	}
	return all
}

// clientPrograms returns the programs of the clients of a checkout by their names. folder is its test/contract.
func clientPrograms(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "drivers", "*", "run"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no drivers in %s: %v", folder, err)
	}
	programs := map[string]string{}
	for _, path := range paths {
		if path, err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
		programs["client "+filepath.Base(filepath.Dir(path))] = path
	}
	return programs
}

// TestEveryClientKeepsTheContract runs the clients with the broker of this checkout and with released brokers.
func TestEveryClientKeepsTheContract(t *testing.T) {
	var names []string
	found := map[string]matrix{}
	for _, v := range versions(t) {
		all := drivers(t)
		if v.name != ownVersion { // a client with and without Exchange differs only where the broker of this checkout shows it
			dropWithoutExchange(all)
		}
		names = append(names, v.name)
		found[v.name] = tryCases(t, startBroker(t, v), all)
	}
	operationsSection.compare(t, found[ownVersion].String())
	brokersSection.compare(t, versionTable(names, found, operationsOf(own.cases)))
}

// dropWithoutExchange leaves each client once, with Exchange.
func dropWithoutExchange(all map[string]newDriver) {
	maps.DeleteFunc(all, func(name string, _ newDriver) bool { return strings.HasSuffix(name, withoutExchange) })
}

// TestWhatOneClientMakesEveryOtherOneAndOpenSSLRead runs each step of a case with another client.
func TestWhatOneClientMakesEveryOtherOneAndOpenSSLRead(t *testing.T) {
	broker := startBroker(t, own)
	all := drivers(t)
	dropWithoutExchange(all) // the result of a client is the same with and without Exchange
	names := slices.Sorted(maps.Keys(all))
	var opened []driver
	for _, name := range names {
		opened = append(opened, open(t, broker.socket, all[name]))
	}
	ran := 0
	for _, c := range own.cases {
		if c.WireOnly || len(c.Steps) == 1 {
			continue
		}
		for first := range opened {
			for second := range opened {
				missing, err := c.run(broker.values, func(step int) driver {
					if step == 0 {
						return opened[first]
					}
					return opened[second]
				})
				if err != nil {
					t.Errorf("%s: %s, and then %s: %v", c.Name, names[first], names[second], err)
				}
				if missing == "" {
					ran++
				}
			}
		}
	}
	if ran == 0 {
		t.Error("no case ran")
	}
	for i, d := range opened {
		if err := opensslReads(t, d, broker.values); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
}

// run runs a case. It returns the operation that a driver does not have, if there is one.
func (c Case) run(values map[string]any, by func(step int) driver) (missing string, err error) {
	saved := maps.Clone(values)
	for i, s := range c.Steps {
		missing, err := s.run(saved, by(i))
		if err != nil {
			return "", fmt.Errorf("step %d, %s: %w", i+1, s.Operation, err)
		}
		if missing {
			return s.Operation, nil
		}
	}
	return "", nil
}

func (s Step) run(saved map[string]any, d driver) (missing bool, err error) {
	request, err := fill(s.Request, saved)
	if err != nil {
		return false, err
	}
	call := Call{Operation: s.Operation, Request: request.(map[string]any)}
	var client sessionClient
	if s.Session != "" {
		if client, call.Request, err = s.runInSession(saved, call.Request); err != nil {
			return false, err
		}
	}
	answer, err := d.call(call)
	switch {
	case err != nil:
		return false, err
	case answer.Unsupported:
		return true, nil
	case answer.Refused != "" && s.Error != nil && s.Error.Code == "INVALID_ARGUMENT":
		return false, nil
	case answer.Refused != "":
		return false, fmt.Errorf("the client refused the request: %s", answer.Refused)
	case s.Error != nil:
		return false, s.Error.compare(call, answer)
	case answer.Error != nil:
		return false, fmt.Errorf("the call ended with %s: %s", answer.Error.Code, answer.Error.Message)
	}
	want, err := fill(s.Reply, saved)
	if err != nil {
		return false, err
	}
	if err := compare("reply", want, any(answer.Reply)); err != nil {
		return false, err
	}
	if client != nil {
		if err := client.after(s.Operation, answer.Reply); err != nil {
			return false, err
		}
	}
	for name, path := range s.Save {
		if saved[name], err = field(answer.Reply, path); err != nil {
			return false, err
		}
	}
	return false, nil
}

// compare returns an error if a call did not end as expected, or if its error does not name the operation and the profile.
func (e ExpectedError) compare(call Call, answer Answer) error {
	if answer.Error == nil {
		return fmt.Errorf("the call returned a reply, expected the error %s", e.Code)
	}
	want := map[string]any{
		"code": e.Code, "message": map[string]any{"$contains": e.Message}, "operation": call.profileOperation(), "profile": call.Request["profile"],
	}
	got := map[string]any{
		"code": answer.Error.Code, "message": answer.Error.Message, "operation": answer.Error.Operation, "profile": answer.Error.Profile,
	}
	return compare("error", want, any(got))
}

// open starts a driver for the broker at a socket until the test ends.
func open(t *testing.T, socket string, start newDriver) driver {
	t.Helper()
	d, err := start(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		remove, err := buildOwn()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer remove()
		return m.Run()
	}())
}

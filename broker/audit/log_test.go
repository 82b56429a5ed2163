// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// key returns a key that is the same for the same seed.
func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// memory is an output that can fail.
type memory struct {
	mu   sync.Mutex
	text bytes.Buffer
	// fails is the error of writes. A failing write leaves tearing bytes of the line.
	fails   error
	tearing int
	// blocked makes writes wait until it is closed, if it is not nil.
	blocked chan struct{}
}

func (m *memory) Write(lines []byte) error {
	m.mu.Lock()
	blocked := m.blocked
	m.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		if m.tearing > 0 {
			m.text.Write(lines[:m.tearing])
			m.text.WriteByte('\n')
		}
		return m.fails
	}
	m.text.Write(lines)
	return nil
}

func (m *memory) set(fails error, tearing int, blocked chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails, m.tearing, m.blocked = fails, tearing, blocked
}

func (m *memory) Sync() error      { return nil }
func (m *memory) Full() bool       { return false }
func (m *memory) Rotate() error    { return nil }
func (m *memory) Previous() string { return "" }

func newLog(t *testing.T, output audit.Output) *audit.Log {
	t.Helper()
	log, err := audit.New(audit.Options{
		Output: output, Signer: key(1), Logger: slog.New(slog.DiscardHandler),
		Attributes: [][2]string{{"service.version", "v1"}, {"host.name", "pod-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

// record returns a record that has everything.
func record(n int) *audit.Record {
	return &audit.Record{
		Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Profile: "Orders", Digest: "sha256:1", Revision: 3,
		Use: profile.Use{
			Operation: profile.OpSignData, Caller: callers.Caller{Container: "web", UID: 1000, GID: 2000, Known: true},
			Keys: [2]profile.UsedKey{{Algorithm: "RSA", Bits: 3072, ID: "orders"}},
		},
		Assessment:  &profile.Assessment{Algorithm: "rsa-with-sha-256", Strength: profile.Strength{Bits: 128}},
		RequestSize: n, ReplySize: 384, Code: "OK", KeyVersion: "7", Pin: []byte{1, 2},
	}
}

func write(t *testing.T, log *audit.Log, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := log.Write(t.Context(), record(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// written returns the lines of a log of five records that has ended.
func written(t *testing.T) []string {
	t.Helper()
	var m memory
	log := newLog(t, &m)
	write(t, log, 0, 5)
	log.Close()
	lines := strings.SplitAfter(m.text.String(), "\n")
	return lines[:len(lines)-1]
}

func verify(text string) (audit.Report, error) {
	v := audit.NewVerifier(key(1).Public())
	err := v.Read("log", strings.NewReader(text))
	return v.Report(), err
}

func TestARecordHasEverythingButInputsAndKeys(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(written(t)[1]), &got); err != nil {
		t.Fatal(err)
	}
	for _, varying := range []string{"audit.chain", "audit.hash"} {
		if got[varying] == "" {
			t.Errorf("%s is empty", varying)
		}
		delete(got, varying)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"algorithm":"rsa-with-sha-256","audit.sequence":1,"client.container":"web","client.gid":2000,"client.uid":1000,"code":"OK","event":"call",` +
		`"fips":"approved","host.name":"pod-1","keys":[{"algorithm":"RSA","bits":3072,"id":"orders","spki.sha256":"0102","version":"7"}],"operation":"SignData",` +
		`"profile":"Orders","profiles.digest":"sha256:1","profiles.revision":3,"reply.size":384,"request.size":0,"service.version":"v1","strength":128,"time":"2026-11-23T12:00:00.000000Z"}`
	if string(text) != want {
		t.Errorf("the record is\n%s\nexpected\n%s", text, want)
	}
}

func TestALogThatNobodyTouchedIsIntact(t *testing.T) {
	r, err := verify(strings.Join(written(t), ""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Records != 5 || r.Chains != 1 || r.Checkpoints != 1 || r.Unsigned != 0 || r.Lost != 0 || len(r.Notes) != 0 {
		t.Errorf("the report is %+v, expected 5 records in one chain that a checkpoint signs", r)
	}
}

// otherHash changes the last digit of the hash of a line.
func otherHash(line string) string {
	i, digit := len(line)-len("0\"}\n"), "0"
	if line[i:i+1] == digit {
		digit = "1"
	}
	return line[:i] + digit + line[i+1:]
}

func TestDamageOfALogIsFound(t *testing.T) {
	for name, damage := range map[string]func(lines []string) []string{
		"a record was removed":       func(l []string) []string { return append(l[:2], l[3:]...) },
		"the first line was removed": func(l []string) []string { return l[1:] },
		"a record was changed":       func(l []string) []string { l[2] = strings.Replace(l[2], "Orders", "Ordera", 1); return l },
		"a number of a record was changed": func(l []string) []string {
			l[2] = strings.Replace(l[2], `"strength":128`, `"strength":112`, 1)
			return l
		},
		"the hash of a record was changed":   func(l []string) []string { l[2] = otherHash(l[2]); return l },
		"two records were swapped":           func(l []string) []string { l[2], l[3] = l[3], l[2]; return l },
		"a record is there twice":            func(l []string) []string { return append(l[:3], l[2:]...) },
		"a record of another log was added":  func(l []string) []string { return append(l[:3], append([]string{written(t)[3]}, l[3:]...)...) },
		"a line of something else was added": func(l []string) []string { return append(l[:3], append([]string{"hello\n"}, l[3:]...)...) },
		"a record was cut":                   func(l []string) []string { l[2] = l[2][:40] + "\n"; return l },
		"the signature was changed": func(l []string) []string {
			l[6] = strings.Replace(l[6], `"signature":"`, `"signature":"AAAA`, 1)
			return l
		},
		"the signature of another log was taken": func(l []string) []string { l[6] = written(t)[6]; return l },
		"a record follows the end":               func(l []string) []string { return append(l, l[2]) },
		"the key was replaced":                   func(l []string) []string { l[0] = strings.Replace(l[0], "MCow", "MCoW", 1); return l },
	} {
		t.Run(name, func(t *testing.T) {
			lines := damage(written(t))
			var found *audit.DamageError
			if _, err := verify(strings.Join(lines, "")); !errors.As(err, &found) {
				t.Errorf("the error is %v, expected the line of the damage", err)
			}
		})
	}
}

func TestAChangedByteOfASignedLogIsFound(t *testing.T) {
	text := []byte(strings.Join(written(t), ""))
	for i := 0; i < len(text); i += 7 {
		changed := bytes.Clone(text)
		changed[i] ^= 0x01
		r, err := verify(string(changed))
		if err == nil && len(r.Notes) == 0 {
			t.Fatalf("byte %d was changed from %q to %q, and the log is called intact", i, text[i], changed[i])
		}
	}
}

func TestALogThatSomebodyWroteAnewIsFoundWithTheKey(t *testing.T) {
	var m memory
	log, err := audit.New(audit.Options{Output: &m, Signer: key(2), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	write(t, log, 0, 5)
	log.Close()
	if _, err := verify(m.text.String()); err == nil || !strings.Contains(err.Error(), "another public key") {
		t.Errorf("the error is %v, expected that the key is another one", err)
	}
}

func TestACutEndIsSaid(t *testing.T) {
	lines := written(t)
	r, err := verify(strings.Join(lines[:4], ""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Unsigned != 4 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "has no end") {
		t.Errorf("the report is %+v, expected 4 unsigned lines and a note that the end is missing", r)
	}
}

// A stranger can continue a chain without its key, but only as far as a broker may write without a checkpoint.
func TestManyLinesWithoutACheckpointAreDamage(t *testing.T) {
	lines := written(t)
	lines = lines[:len(lines)-1] // without the end, which is signed
	last := lines[len(lines)-1]
	template, _, _ := strings.Cut(last, `"audit.sequence":`)
	var fields struct {
		Sequence int    `json:"audit.sequence"`
		Hash     string `json:"audit.hash"`
	}
	if err := json.Unmarshal([]byte(last), &fields); err != nil {
		t.Fatal(err)
	}
	before, err := hex.DecodeString(fields.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for range 10000 {
		fields.Sequence++
		text := fmt.Sprintf(`%s"audit.sequence":%d`, template, fields.Sequence)
		hash := sha256.Sum256(append(before, text...))
		before = hash[:]
		lines = append(lines, fmt.Sprintf("%s,\"audit.hash\":\"%x\"}\n", text, hash))
	}
	for name, c := range map[string]struct {
		added   int
		problem string
	}{
		"as many as a broker may leave are only counted": {5000, ""},
		"more are damage": {10000, "that no checkpoint signs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verify(strings.Join(lines[:len(lines)-10000+c.added], ""))
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("got %v, expected an error with %q", err, c.problem)
			}
		})
	}
}

func TestARequiredRecordThatCannotBeWrittenIsAnError(t *testing.T) {
	var m memory
	log := newLog(t, &m)
	write(t, log, 0, 2)
	full := errors.New("no space left on device")
	m.set(full, 0, nil)
	if err := log.Write(t.Context(), record(2)); !errors.Is(err, full) {
		t.Errorf("the error is %v, expected the error of the disk", err)
	}
	log.Add(record(3))
	m.set(nil, 0, nil)
	// Either the record was written together with the failing one, or it is lost as well.
	if err := log.Write(t.Context(), record(4)); err != nil {
		t.Errorf("there is room again, and the error is %v", err)
	}
	log.Close()
	r, err := verify(m.text.String())
	if err != nil {
		t.Fatal(err)
	}
	records, lost := log.Stats()
	if r.Lost != lost || r.Records != int(records) || lost == 0 || r.Records+int(r.Lost) != 5 { //nolint:gosec // a handful
		t.Errorf("the log has %d records and %d lost, its metrics say %d and %d, expected 5 in all", r.Records, r.Lost, records, lost)
	}
}

func TestAWriteThatIsTornIsNotTakenForDamage(t *testing.T) {
	var m memory
	log := newLog(t, &m)
	write(t, log, 0, 2)
	m.set(errors.New("no space left on device"), 50, nil)
	if err := log.Write(t.Context(), record(2)); err == nil {
		t.Error("a record that was not written whole counts as written")
	}
	m.set(nil, 0, nil)
	write(t, log, 3, 4)
	log.Close()
	r, err := verify(m.text.String())
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not a complete line") {
		t.Errorf("the report is %+v, expected one lost record and a note about the line", r)
	}
}

// filling is an output that is full, and fails in the middle of the next writes.
type filling struct {
	memory
	failures int // how many writes fail
	full     bool
}

func (f *filling) Write(lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == 0 {
		f.text.Write(lines)
		return nil
	}
	f.failures--
	f.text.Write(append(lines[:50:50], '\n'))
	return errors.New("no space left on device")
}

func (f *filling) fill(failures int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures, f.full = failures, true
}

func (f *filling) Full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full
}

func (f *filling) Rotate() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = false
	return nil
}

func TestACheckpointThatIsTornIsNotTakenForDamage(t *testing.T) {
	for sentence, failures := range map[string]int{
		"only the checkpoint before a new file": 1,
		"the record after it as well":           2,
		"and all of it once more":               4,
	} {
		t.Run(sentence, func(t *testing.T) {
			var f filling
			log := newLog(t, &f)
			write(t, log, 0, 2)
			f.fill(failures)
			failed := 0
			for n := 2; f.Full(); n++ {
				if err := log.Write(t.Context(), record(n)); err != nil {
					failed++
				}
			}
			write(t, log, 8, 9)
			log.Close()
			r, err := verify(f.text.String())
			if err != nil {
				t.Fatalf("%v in\n%s", err, f.text.String())
			}
			if int(r.Lost) != failed || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not a complete line") { //nolint:gosec // a handful
				t.Errorf("%d records failed and the report is %+v, expected as many lost ones and a note about a line", failed, r)
			}
		})
	}
}

func TestACallDoesNotWaitLongerThanItsContext(t *testing.T) {
	var m memory
	blocked := make(chan struct{})
	m.set(nil, 0, blocked)
	log := newLog(t, &m)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- log.Write(ctx, record(0)) }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, expected the error of the context", err)
	}
	close(blocked)
}

func TestRecordsWithoutRoomAreLostAndCounted(t *testing.T) {
	var m memory
	blocked := make(chan struct{})
	m.set(nil, 0, blocked)
	log := newLog(t, &m)
	const calls = 10_000 // some 5 MiB
	for n := range calls {
		log.Add(record(n))
	}
	_, lost := log.Stats()
	if lost == 0 || lost == calls {
		t.Errorf("%d of %d records are lost, expected a part of them", lost, calls)
	}
	if err := log.Write(t.Context(), record(0)); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("the error of a required record is %v, expected that there is no room", err)
	}
	close(blocked)
	log.Close()
	r, err := verify(m.text.String())
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != lost+1 || r.Records+int(r.Lost) != calls+1 { //nolint:gosec // some thousand
		t.Errorf("the log has %d records and %d lost, expected %d in all", r.Records, r.Lost, calls+1)
	}
}

func TestCallersMayWriteAtTheSameTime(t *testing.T) {
	var m memory
	log := newLog(t, &m)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for n := range 200 {
				if err := log.Write(t.Context(), record(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	log.Close()
	if r, err := verify(m.text.String()); err != nil || r.Records != 1600 {
		t.Errorf("the log has %d records (error %v), expected 1600", r.Records, err)
	}
}

func TestAKeyThatCannotSignCheckpointsIsRefused(t *testing.T) {
	if err := audit.CheckKey("no key"); err == nil {
		t.Error("a text is taken as a key")
	}
}

// files returns a log in files, and the names of them, oldest first.
func files(t *testing.T, directory string, maxSize int64, from, to int, end bool) {
	t.Helper()
	f, err := audit.OpenFile(filepath.Join(directory, "audit.jsonl"), maxSize, 100)
	if err != nil {
		t.Fatal(err)
	}
	log := newLog(t, f)
	write(t, log, from, to)
	if end {
		log.Close()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		// The broker was killed: nobody closes the log before the next one begins.
		_ = f.Close()
	}
}

// verifyFiles checks all files of a directory.
func verifyFiles(t *testing.T, directory string) (audit.Report, error) {
	t.Helper()
	v := audit.NewVerifier(key(1).Public())
	for n := 100; n >= 0; n-- {
		name := filepath.Join(directory, fmt.Sprintf("audit.jsonl.%d", n))
		if n == 0 {
			name = filepath.Join(directory, "audit.jsonl")
		}
		text, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		err = v.Read(name, text)
		_ = text.Close()
		if err != nil {
			return v.Report(), err
		}
	}
	return v.Report(), nil
}

func TestAFileGoesOnAfterARestart(t *testing.T) {
	directory := t.TempDir()
	files(t, directory, 1<<20, 0, 3, true)
	files(t, directory, 1<<20, 3, 6, true)
	r, err := verifyFiles(t, directory)
	if err != nil || r.Chains != 2 || r.Records != 6 || len(r.Notes) != 0 {
		t.Errorf("the report is %+v (error %v), expected 6 records in two chains", r, err)
	}
}

func TestAFullFileMakesRoomForAnotherOne(t *testing.T) {
	directory := t.TempDir()
	files(t, directory, 1200, 0, 20, true)
	r, err := verifyFiles(t, directory)
	if err != nil || r.Chains != 1 || r.Records != 20 || r.Checkpoints < 3 || len(r.Notes) != 0 {
		t.Errorf("the report is %+v (error %v), expected 20 records and a checkpoint in each file", r, err)
	}
	files(t, directory, 1200, 20, 25, true)
	if r, err = verifyFiles(t, directory); err != nil || r.Chains != 2 || r.Records != 25 {
		t.Errorf("the report is %+v (error %v), expected 25 records in two chains", r, err)
	}
	if err := os.Remove(filepath.Join(directory, "audit.jsonl.2")); err != nil {
		t.Fatal(err)
	}
	var found *audit.DamageError
	if _, err := verifyFiles(t, directory); !errors.As(err, &found) {
		t.Errorf("a file is missing, and the error is %v", err)
	}
}

// turning is an output of files. The first write to each further file fails.
type turning struct{ memory }

func (m *turning) Full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Len() > 5000
}

func (m *turning) Rotate() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text.Reset()
	m.fails = errors.New("no space left on device")
	return nil
}

func TestAFileWhoseFirstLinesCouldNotBeWrittenCanBeVerifiedAlone(t *testing.T) {
	var m turning
	log := newLog(t, &m)
	for n := 0; log.Write(t.Context(), record(n)) == nil; n++ {
	}
	m.set(nil, 0, nil)
	write(t, log, 10, 12)
	log.Close()
	r, err := verify(m.text.String())
	if err != nil || r.Records != 2 || r.Lost != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "older part") {
		t.Errorf("the report is %+v (error %v), expected 2 records, one lost one, and a note about the files before", r, err)
	}
}

func TestFullFilesAreKeptIfTheFileWasMovedAway(t *testing.T) {
	directory := t.TempDir()
	name := filepath.Join(directory, "audit.jsonl")
	files(t, directory, 1200, 0, 20, true)
	before, err := filepath.Glob(name + ".*")
	if err != nil || len(before) < 3 {
		t.Fatalf("the full files are %v (error %v), expected at least three", before, err)
	}
	f, err := audit.OpenFile(name, 1, len(before))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := os.Rename(name, filepath.Join(directory, "collected")); err != nil {
		t.Fatal(err)
	}
	if err := f.Rotate(); err != nil {
		t.Errorf("the next file does not begin: %v", err)
	}
	after, err := filepath.Glob(name + "*")
	if err != nil || !slices.Equal(after, append([]string{name}, before...)) {
		t.Errorf("the files are %v (error %v), expected the new file and %v", after, err, before)
	}
}

func TestARecordThatHasNoFileIsAnErrorUntilThereIsOne(t *testing.T) {
	for sentence, before := range map[string]int{"before the first record": 0, "after records": 3} {
		t.Run(sentence, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "audit")
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := audit.OpenFile(filepath.Join(directory, "audit.jsonl"), 1<<20, 2)
			if err != nil {
				t.Fatal(err)
			}
			log := newLog(t, f)
			write(t, log, 0, before)
			if err := os.RemoveAll(directory); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := log.Write(t.Context(), record(before)); err == nil || !strings.Contains(err.Error(), "the audit file was deleted or moved away, and a new one cannot be made") {
					t.Errorf("a record without a file is written: %v", err)
				}
			}
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, log, before, before+2)
			log.Close()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := verifyFiles(t, directory); err != nil || r.Records != 2 || r.Lost != 2 {
				t.Errorf("the report is %+v (error %v), expected 2 records, and 2 that were lost", r, err)
			}
		})
	}
}

func TestAFileIsWrittenByOneProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	first, err := audit.OpenFile(name, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Rotate(); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenFile(name, 1, 2); err == nil || !strings.Contains(err.Error(), "another program writes the audit file "+name) {
		t.Errorf("a second program opens the file: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := audit.OpenFile(name, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAfterAFileWasDeletedAreInANewFile(t *testing.T) {
	for sentence, before := range map[string]int{"before the first record": 0, "after records": 3} {
		t.Run(sentence, func(t *testing.T) {
			directory := t.TempDir()
			name := filepath.Join(directory, "audit.jsonl")
			f, err := audit.OpenFile(name, 1<<20, 2)
			if err != nil {
				t.Fatal(err)
			}
			log := newLog(t, f)
			write(t, log, 0, before)
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			write(t, log, before, before+2)
			log.Close()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := verifyFiles(t, directory); err != nil || r.Records != 2 || (len(r.Notes) > 0) != (before > 0) {
				t.Errorf("the report is %+v (error %v), expected 2 records, and a note about the older part if there was one", r, err)
			}
		})
	}
}

func TestAFileThatEndsInTheMiddleOfALineGoesOn(t *testing.T) {
	directory := t.TempDir()
	files(t, directory, 1<<20, 0, 3, false)
	name := filepath.Join(directory, "audit.jsonl")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	files(t, directory, 1<<20, 3, 6, true)
	r, err := verifyFiles(t, directory)
	if err != nil || r.Chains != 2 || r.Records != 5 || len(r.Notes) != 2 {
		t.Errorf("the report is %+v (error %v), expected 5 records, and notes about the line and the missing end", r, err)
	}
}

// tear leaves only a part of the first line of a file.
func tear(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text[:50], 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFirstLineThatIsTornIsNotTakenForDamage(t *testing.T) {
	directory := t.TempDir()
	name := filepath.Join(directory, "audit.jsonl")
	files(t, directory, 1<<20, 0, 3, false)
	tear(t, name)
	files(t, directory, 1<<20, 3, 6, true)
	r, err := verifyFiles(t, directory)
	if err != nil || r.Chains != 1 || r.Records != 3 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "line 1 of "+name+" is not a complete line") {
		t.Errorf("the report is %+v (error %v), expected 3 records and a note about the line", r, err)
	}
}

func TestAChainAfterAFileWithATornFirstLineNamesTheFileBefore(t *testing.T) {
	directory := t.TempDir()
	name := filepath.Join(directory, "audit.jsonl")
	files(t, directory, 1<<20, 0, 3, true)
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	files(t, directory, 1<<20, 3, 6, false)
	tear(t, name)
	files(t, directory, 1<<20, 6, 9, true)
	r, err := verifyFiles(t, directory)
	if err != nil || r.Chains != 2 || r.Records != 6 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not a complete line") {
		t.Errorf("the report is %+v (error %v), expected 6 records in two chains and a note about the line", r, err)
	}
	if err := os.Remove(name + ".1"); err != nil {
		t.Fatal(err)
	}
	r, err = verifyFiles(t, directory)
	if err != nil || r.Chains != 1 || r.Records != 3 || len(r.Notes) != 2 || !strings.Contains(strings.Join(r.Notes, "\n"), "older part") {
		t.Errorf("the report of the file alone is %+v (error %v), expected 3 records and notes about the line and the file before", r, err)
	}
}

func TestLinesOfNoLogAreDamageUnlessAChainBeginsAfterThem(t *testing.T) {
	lines := written(t)
	other := func(before, after string) string {
		text, _, _ := strings.Cut(strings.Replace(lines[0], before, after, 1), `,"audit.hash":"`)
		return fmt.Sprintf("%s,\"audit.hash\":\"%x\"}\n", text, sha256.Sum256(append(make([]byte, sha256.Size), text...)))
	}
	if _, err := verify(other("", "")); err != nil {
		t.Fatal(err)
	}
	id := strings.SplitN(strings.SplitN(lines[0], `"audit.chain":"`, 2)[1], `"`, 2)[0]
	for sentence, text := range map[string]string{
		"a chain with another name":     other(id, `\u001b[2J`),
		"a key in two lines":            other(`"public_key":"M`, `"public_key":"M\n`),
		"only such a line":              "x\n",
		"several":                       "x\ny\nz",
		"such a line after the end":     strings.Join(lines, "") + "x\n",
		"a record after such a line":    "x\n" + lines[1],
		"the first line of a whole log": "x\n" + strings.Join(lines[1:], ""),
	} {
		var found *audit.DamageError
		if r, err := verify(text); !errors.As(err, &found) {
			t.Errorf("%s: the error is %v, and the report is %+v", sentence, err, r)
		}
	}
}

func TestAFileThatWasChangedBetweenTwoRunsIsFound(t *testing.T) {
	directory := t.TempDir()
	files(t, directory, 1<<20, 0, 3, true)
	name := filepath.Join(directory, "audit.jsonl")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(name, bytes.Join(lines[:len(lines)-2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	files(t, directory, 1<<20, 3, 6, true)
	r, err := verifyFiles(t, directory)
	if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "has no end") {
		t.Errorf("the report is %+v (error %v), expected a note that the end of the first chain is missing", r, err)
	}
}

func TestALogWhoseOutputTakesNothingEndsAfterSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		blocked := make(chan struct{})
		m.set(nil, 0, blocked)
		log := newLog(t, &m)
		log.Add(record(0))
		log.Close()
		close(blocked) // so that the goroutine of the log ends
	})
}

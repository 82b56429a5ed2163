// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Set is all profiles of one file that can be served. It never changes and is
// safe for concurrent use.
type Set struct {
	digest   string
	profiles map[string]*Compiled
	names    []string
	rejected int
	fips     bool
	warnings Problems
	refused  map[string]Refusal
	sides    []Side
}

// Digest identifies the file the set was compiled from, see Digest. It is empty for
// a set of CompileDocument.
func (s *Set) Digest() string { return s.digest }

// Lookup finds a profile by its exact name.
func (s *Set) Lookup(name string) (*Compiled, bool) {
	p, ok := s.profiles[name]
	return p, ok
}

// Names returns the names of all profiles, sorted.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Len returns how many profiles the set has.
func (s *Set) Len() int { return len(s.names) }

// Rejected returns how many profiles of the file are out of service because of
// a problem.
func (s *Set) Rejected() int { return s.rejected }

// RequiresFIPS reports whether the set was compiled with RequireFIPS.
func (s *Set) RequiresFIPS() bool { return s.fips }

// Compiled is one profile, checked and prepared for requests. It never changes and is safe for
// concurrent use.
type Compiled struct {
	name string
	policies
	deprecation *Deprecation
	callers     *callers.Policy
	audit       AuditPolicy
	assessments []Assessment
	strength    Strength
}

// Name is the profile's name.
func (c *Compiled) Name() string { return c.name }

// Deprecation announces the end of the profile, or is nil. The caller must not change it.
func (c *Compiled) Deprecation() *Deprecation { return c.deprecation }

// Callers restricts who may use the profile. It is nil if everybody may use it.
func (c *Compiled) Callers() *callers.Policy { return c.callers }

// Audit says which calls are recorded.
func (c *Compiled) Audit() AuditPolicy { return c.audit }

// CompileOption changes what Compile accepts.
type CompileOption func(*compileOptions)

type compileOptions struct {
	requireFIPS bool
	instance    string
	manager     *KMS // of the present profile, nil if it has none
}

// RequireFIPS is for brokers that serve only operations that FIPS 140-3 approves. It marks other
// operations as refused. A profile with no approved operation is a problem.
func RequireFIPS() CompileOption {
	return func(o *compileOptions) { o.requireFIPS = true }
}

// Compile reads a profile file, checks it, and prepares its profiles for requests. All problems
// are reported at once.
//
// A problem inside a profile removes only that profile from the set. If profiles share a name,
// all of them are removed. The set is nil if nothing of the file can be used: it is not YAML, has
// a problem at its root, or has profiles of which none is valid. A file with an empty list of
// profiles gives an empty set.
func Compile(file string, data []byte, options ...CompileOption) (*Set, Problems) {
	r := yamlfile.NewReport(file)
	doc := parse(r, data)
	if doc == nil {
		return nil, r.Finish()
	}
	return compileRead(r, doc, Digest(data), options)
}

// CompileDocument returns the same as Compile of the file that Marshal makes of the document,
// without that file. Problems have the same fields and messages in the same order, but no file,
// line and column. The set has no digest.
func CompileDocument(doc *Document, options ...CompileOption) (*Set, Problems) {
	return compileDocument(doc, func() ([]byte, error) { return Marshal(doc) }, "", options)
}

// CompileWritten is CompileDocument for a caller that already has the file that Marshal made of
// the document. The set has the digest of that file.
func CompileWritten(doc *Document, file []byte, options ...CompileOption) (*Set, Problems) {
	return compileDocument(doc, func() ([]byte, error) { return file, nil }, Digest(file), options)
}

// compileDocument calls marshal only for a document that is so large that the size of its file
// matters.
func compileDocument(doc *Document, file func() ([]byte, error), digest string, options []CompileOption) (*Set, Problems) {
	r := yamlfile.NewReport("")
	copied := *doc
	copied.FormatVersion = 0 // Marshal writes the version that is needed
	yamlfile.Outline(r, &copied, file)
	return compileRead(r, &copied, digest, options)
}

// compileRead compiles a document that was read.
func compileRead(r *yamlfile.Report, doc *Document, digest string, options []CompileOption) (*Set, Problems) {
	var o compileOptions
	for _, option := range options {
		option(&o)
	}
	validator{r}.document(doc)
	if o.requireFIPS {
		validator{r}.approved(doc)
	}
	problems := r.Finish()
	if r.Invalid[yamlfile.Root] {
		return nil, problems
	}
	set := &Set{digest: digest, profiles: make(map[string]*Compiled, len(doc.Profiles)), fips: o.requireFIPS}
	set.sides = sides(r, doc, o.instance)
	for i := range doc.Profiles {
		switch {
		case r.Invalid[i]:
			set.rejected++
		case set.serves(&doc.Profiles[i]):
			o.manager = managerOf(&doc.Profiles[i], doc)
			p := compile(&doc.Profiles[i], o)
			set.profiles[p.name] = p
			set.names = append(set.names, p.name)
		}
	}
	set.warnings = warnings(r, doc)
	set.refused = refusals(r, doc, problems)
	for _, name := range set.names {
		delete(set.refused, name) // one of two profiles of the name is served
	}
	if len(set.names) == 0 && len(doc.Profiles) > 0 {
		return nil, problems
	}
	slices.Sort(set.names)
	return set, problems
}

// compile prepares a valid profile for requests. The name is copied so that the set does not keep
// the whole file in memory.
func compile(p *Profile, o compileOptions) *Compiled {
	c := &Compiled{name: strings.Clone(p.Name), callers: p.Callers.Policy()}
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.compile(c, o)
		}
	}
	if d := p.Deprecation; d != nil {
		c.deprecation = &Deprecation{
			ReplacedBy:      strings.Clone(d.ReplacedBy),
			DeprecatedSince: strings.Clone(d.DeprecatedSince),
			RemoveAfter:     strings.Clone(d.RemoveAfter),
			Reason:          strings.Clone(d.Reason),
		}
	}
	c.audit = compileAudit(p.Audit)
	c.assess(p, o)
	return c
}

// validated returns the first result of a lookup that cannot fail, because the validator has
// checked the name.
func validated[P any](pattern P, ok bool) P {
	if !ok {
		panic("profile: compile of a profile that was not validated")
	}
	return pattern
}

// Refusal says why a profile of the file is out of service.
type Refusal struct {
	// Problem is the first problem of the profile with its line and field, as part of a
	// sentence. It is empty if not every caller may read it: the profile restricts its
	// callers, or the problem is in the configuration of a key manager and may quote
	// credentials.
	Problem string
}

// Refused returns why the profile with this exact name is out of service. It reports false
// if the file has no profile of this name, or if the profile is served.
func (s *Set) Refused(name string) (Refusal, bool) {
	r, ok := s.refused[name]
	return r, ok
}

// refusals returns the first problem of each profile that is out of service, by the name of
// the profile. It leaves out profiles without a valid name, which no call can name.
func refusals(r *yamlfile.Report, doc *Document, problems Problems) map[string]Refusal {
	refused := map[string]Refusal{}
	private := map[string]bool{}
	for i := range doc.Profiles {
		name := doc.Profiles[i].Name
		if name == "" || len(name) > MaxNameLength || !r.Invalid[i] {
			continue
		}
		refused[strings.Clone(name)] = Refusal{}
		callers := yamlfile.Item(i).Field("Callers")
		private[name] = private[name] || r.Present(callers) || r.Failed[callers]
	}
	seen := map[string]bool{}
	for _, problem := range problems {
		name := problem.Profile
		if _, out := refused[name]; !out || seen[name] {
			continue
		}
		seen[name] = true
		if !private[name] && !mentionsSecrets(problem.Field) {
			text := problem.Field + " " + problem.Message
			if problem.Line != 0 {
				text = fmt.Sprintf("line %d, %s", problem.Line, text)
			}
			refused[name] = Refusal{text}
		}
	}
	return refused
}

func mentionsSecrets(field string) bool { return field == "KMS" || strings.HasPrefix(field, "KMS.") }

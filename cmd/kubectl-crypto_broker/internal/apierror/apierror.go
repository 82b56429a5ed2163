// SPDX-License-Identifier: Apache-2.0

// Package apierror explains errors of an API server in plain words: the user lacks a right, the
// cluster does not accept the credentials, or the cluster does not answer.
package apierror

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// noRight matches the API server's message when a user lacks a right.
var noRight = regexp.MustCompile(`[a-z0-9.-]+(?: "[^"]*")? is forbidden: User "([^"]*)" cannot ([a-z]+) resource "([^"]*)" in API group "[^"]*"(?: in the namespace "([^"]*)"| at the cluster scope)?`)

// LacksRight reports whether an error is about authorization. An error of admission has the same
// code.
func LacksRight(err error) bool {
	return apierrors.IsForbidden(err) && noRight.MatchString(err.Error())
}

// Plain returns one line that explains an error of a cluster: which right the user lacks, that
// the credentials are not accepted, or that the cluster does not answer.
func Plain(err error) string {
	var unreachable *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept the credentials: they are wrong, or no longer valid"
	case errors.As(err, &unreachable):
		server := unreachable.URL
		if parsed, err := url.Parse(unreachable.URL); err == nil {
			server = parsed.Scheme + "://" + parsed.Host
		}
		return fmt.Sprintf("the cluster at %s does not answer: %s", server, OneLine(unreachable.Err.Error()))
	}
	return noRight.ReplaceAllStringFunc(err.Error(), func(text string) string {
		found := noRight.FindStringSubmatch(text)
		user, verb, resource, namespace := found[1], found[2], found[3], found[4]
		where := " in all namespaces"
		switch {
		case namespace != "":
			where = " in namespace " + namespace
		case clusterWide[resource]:
			where = ""
		}
		return fmt.Sprintf("the right to %s %s%s is missing (user %s)", verb, resource, where, user)
	})
}

// clusterWide are resources without a namespace.
var clusterWide = map[string]bool{
	"namespaces": true, "mutatingwebhookconfigurations": true, "mutatingadmissionpolicies": true, "mutatingadmissionpolicybindings": true, "injectiontemplates": true,
	"validatingwebhookconfigurations": true, "validatingadmissionpolicies": true, "validatingadmissionpolicybindings": true,
	"customresourcedefinitions": true, "clustercryptoprofiles": true,
}

// OneLine returns a text with each run of white space as one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Body returns the body of an answer, or the error with the message of the API server. The method
// Raw of an answer returns an error without that message.
func Body(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

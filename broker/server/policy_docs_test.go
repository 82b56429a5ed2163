// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
)

func TestTheExampleInTheDocumentationOfListProfilesWorks(t *testing.T) {
	d := document(t, map[string]int{"yaml": 1, "sh": 1, "text": 1, "json": 2}, "operations", "list-profiles.md")
	var request policyv1.ListProfilesRequest
	var want, got policyv1.ListProfilesResponse
	if err := protojson.Unmarshal([]byte(d.blocks["json"][0]), &request); err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal([]byte(d.blocks["json"][1]), &want); err != nil {
		t.Fatal(err)
	}
	wire, err := proto.Marshal(&request)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := call(t, connect(t, start(t, d.blocks["yaml"][0]).socket("")), methodListProfiles, wire)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(reply, &got); err != nil {
		t.Fatal(err)
	}
	// The module version in images; this test is built without it.
	got.Fips = &policyv1.FipsStatus{Module: "v1.0.0", Mode: "on"}
	if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("reply (-document +broker):\n%s", diff)
	}
}

func TestTheExampleInTheDocumentationOfBenchmarkHasTheRightForm(t *testing.T) {
	d := document(t, map[string]int{"json": 1}, "operations", "benchmark.md")
	reply := ask(t, connect(t, development(t).socket("")), "/CryptoBroker.CryptoGrpcDev/Benchmark", nil)
	var documented, measured struct {
		Results []struct {
			Name    string
			AvgTime int64
		}
	}
	if err := json.Unmarshal([]byte(d.blocks["json"][0]), &documented); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(reply[1]), &measured); err != nil {
		t.Fatal(err)
	}
	for i, result := range documented.Results {
		if measured.Results[i].Name != result.Name {
			t.Errorf("the document has %s, the broker %s", result.Name, measured.Results[i].Name)
		}
	}
}

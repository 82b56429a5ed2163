// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"

	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// registerReflection offers server reflection in both its versions. It describes only the
// services that this broker offers.
func registerReflection(others rpc.Guard, development bool) {
	options := reflection.ServerOptions{Services: others}
	if !development {
		options.DescriptorResolver = withoutDevelopment()
	}
	reflectionv1.RegisterServerReflectionServer(others, reflection.NewServerV1(options))
	reflectionv1alpha.RegisterServerReflectionServer(others, reflection.NewServer(options))
}

// withoutDevelopment returns all descriptors except the descriptors of the development service.
// They are in files of their own, except for the methods that the first releases had in
// CryptoGrpc.
func withoutDevelopment() *protoregistry.Files {
	hidden := map[string]bool{
		v0.File_cryptobroker_v0_development_proto.Path(): true,
		v1.File_cryptobroker_v1_development_proto.Path(): true,
	}
	shown := new(protoregistry.Files)
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if hidden[file.Path()] {
			return true
		}
		if file.Path() == v0.File_cryptobroker_v0_service_proto.Path() {
			file = cut(file, hidden)
		}
		if err := shown.RegisterFile(file); err != nil {
			panic("server: a description that is registered cannot be registered again: " + err.Error())
		}
		return true
	})
	return shown
}

// cut returns a file without its imports of hidden files, and without the methods that
// take messages of hidden files.
func cut(file protoreflect.FileDescriptor, hidden map[string]bool) protoreflect.FileDescriptor {
	text := protodesc.ToFileDescriptorProto(file)
	text.Dependency = slices.DeleteFunc(text.Dependency, func(path string) bool { return hidden[path] })
	for i, service := range text.Service {
		described := file.Services().Get(i).Methods()
		var methods []*descriptorpb.MethodDescriptorProto
		for j, method := range service.Method {
			if !hidden[described.Get(j).Input().ParentFile().Path()] {
				methods = append(methods, method)
			}
		}
		service.Method = methods
	}
	shorter, err := protodesc.NewFile(text, protoregistry.GlobalFiles)
	if err != nil {
		panic("server: a description without the development service is not valid: " + err.Error())
	}
	return shorter
}

// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
)

// GenerateDataKey serves the method of the same name.
func (a Adapter) GenerateDataKey(c *handlers.Call, request *v1.GenerateDataKeyRequest) (*v1.GenerateDataKeyResponse, error) {
	dataKey, wrapped, with, err := a.Handlers.GenerateDataKey(c, request.GetProfile(), request.GetKeyId(), request.GetContext(), request.GetWithoutDataKey())
	if err != nil {
		return nil, err
	}
	return &v1.GenerateDataKeyResponse{DataKey: dataKey, WrappedKey: wrapped, Descriptor_: Descriptor(c, request.GetProfile(), with.String())}, nil
}

// WrapKey serves the method of the same name.
func (a Adapter) WrapKey(c *handlers.Call, request *v1.WrapKeyRequest) (*v1.WrapKeyResponse, error) {
	wrapped, with, err := a.Handlers.WrapKey(c, request.GetProfile(), request.GetKeyId(), request.GetDataKey(), request.GetContext())
	if err != nil {
		return nil, err
	}
	return &v1.WrapKeyResponse{WrappedKey: wrapped, Descriptor_: Descriptor(c, request.GetProfile(), with.String())}, nil
}

// UnwrapKey serves the method of the same name.
func (a Adapter) UnwrapKey(c *handlers.Call, request *v1.UnwrapKeyRequest) (*v1.UnwrapKeyResponse, error) {
	dataKey, with, err := a.Handlers.UnwrapKey(c, request.GetProfile(), handlers.WrappedKey{Blob: request.GetWrappedKey(), Context: request.GetContext()})
	if err != nil {
		return nil, err
	}
	return &v1.UnwrapKeyResponse{DataKey: dataKey, Descriptor_: Descriptor(c, request.GetProfile(), with.String())}, nil
}

// UnwrapBatch serves the method of the same name.
func (a Adapter) UnwrapBatch(c *handlers.Call, request *v1.UnwrapBatchRequest) (*v1.UnwrapBatchResponse, error) {
	var batch []handlers.WrappedKey
	for _, key := range request.GetKeys() {
		batch = append(batch, handlers.WrappedKey{Blob: key.GetWrappedKey(), Context: key.GetContext()})
	}
	unwrapped, err := a.Handlers.UnwrapBatch(c, request.GetProfile(), batch)
	if err != nil {
		return nil, err
	}
	reply := &v1.UnwrapBatchResponse{}
	for _, u := range unwrapped {
		result := &v1.UnwrapResult{DataKey: u.DataKey}
		if u.Err != nil {
			failure := status.Convert(u.Err)
			result.Code, result.Message = int32(failure.Code()), failure.Message()
		}
		reply.Results = append(reply.Results, result)
	}
	return reply, nil
}

// RewrapKey serves the method of the same name.
func (a Adapter) RewrapKey(c *handlers.Call, request *v1.RewrapKeyRequest) (*v1.RewrapKeyResponse, error) {
	given := handlers.WrappedKey{Blob: request.GetWrappedKey(), Context: request.GetContext()}
	wrapped, with, unchanged, err := a.Handlers.RewrapKey(c, request.GetProfile(), given, request.GetKeyId())
	if err != nil {
		return nil, err
	}
	return &v1.RewrapKeyResponse{WrappedKey: wrapped, Unchanged: unchanged, Descriptor_: Descriptor(c, request.GetProfile(), with.String())}, nil
}

// GetPublicKey serves the method of the same name.
func (a Adapter) GetPublicKey(c *handlers.Call, request *v1.GetPublicKeyRequest) (*v1.GetPublicKeyResponse, error) {
	der, text, version, err := a.Handlers.GetPublicKey(c, request.GetProfile(), request.GetKeyId())
	if err != nil {
		return nil, err
	}
	return &v1.GetPublicKeyResponse{Der: der, Pem: text, Version: version}, nil
}

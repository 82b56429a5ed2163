// SPDX-License-Identifier: Apache-2.0

//! The messages of the protocol. The other files of this folder are generated.

#![allow(clippy::all)]

pub mod session {
    pub mod v1 {
        include!("cryptobroker.session.v1.rs");
    }
}

pub mod stream {
    pub mod v1 {
        include!("cryptobroker.stream.v1.rs");
    }
}

pub mod v1 {
    include!("cryptobroker.v1.rs");
}

/// The reply of grpc.health.v1, whose request is empty.
pub mod health {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct CheckResponse {
        #[prost(int32, tag = "1")]
        pub status: i32,
    }
}

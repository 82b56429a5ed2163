// SPDX-License-Identifier: Apache-2.0

use prost::bytes::{Buf, BufMut, Bytes};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// What gRPC writes before a message.
const HEADER: usize = 5;

/// Sends and receives encoded messages. They are smaller than the messages themselves, which tonic would move from future to
/// future.
pub(crate) struct Raw {
    /// The size of the request, for which tonic would allocate 8 KiB.
    pub request_size: usize,
}

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw { ..*self }
    }

    fn decoder(&mut self) -> Raw {
        Raw { ..*self }
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        let size = HEADER + self.request_size;
        BufferSettings::new(size, size)
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Generates the messages of the client from the .proto files of api/grpc, into the folder that the argument names.

use std::{env, error::Error, path::Path};

const PACKAGES: [(&str, &[&str]); 3] = [
    ("cryptobroker/v1", &["data_keys", "encrypt_data", "key_source", "metadata", "service", "sign_certificate", "sign_data"]),
    ("cryptobroker/stream/v1", &["stream"]),
    ("cryptobroker/session/v1", &["session"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../api/grpc");
    let target = env::args().nth(1).ok_or("expected a folder")?;
    let files = PACKAGES
        .iter()
        .flat_map(|(folder, names)| names.iter().map(move |name| format!("{folder}/{name}.proto")))
        .collect::<Vec<_>>();
    prost_build::Config::new()
        .out_dir(target)
        .disable_comments(["."]) // the comments are for those who read the .proto files
        .compile_fds(protox::compile(files, [root])?)?;
    Ok(())
}

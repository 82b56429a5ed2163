// SPDX-License-Identifier: Apache-2.0

package kmsplugin

// KeyID and Codec are for tests.
var KeyID = keyID

type Codec = codec

// SPDX-License-Identifier: Apache-2.0

package kmsplugin

// KeyID is for tests.
var KeyID = keyID

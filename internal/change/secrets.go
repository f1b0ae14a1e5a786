// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
)

// encrypted ends the names of files that only the owner of a recipient's key can read.
const encrypted = ".age"

// ParseRecipients reads the public keys for which Secrets are encrypted: those of age, or ssh-ed25519 and ssh-rsa.
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	var all []age.Recipient
	for _, key := range keys {
		var r age.Recipient
		var err error
		if strings.HasPrefix(key, "ssh-") {
			r, err = agessh.ParseRecipient(key)
		} else {
			r, err = age.ParseX25519Recipient(key)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no public key of age or ssh: %w", key, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// ReadIdentities reads private keys from a file: those of age, or one of ssh without a passphrase.
func ReadIdentities(file string) ([]age.Identity, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("-----BEGIN")) {
		one, err := agessh.ParseIdentity(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return []age.Identity{one}, nil
	}
	all, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// encrypt encrypts data for recipients.
func encrypt(data []byte, recipients []age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, recipients...)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// ErrEncrypted says that a manifest is encrypted, and no key for it was given.
var ErrEncrypted = errors.New("it is encrypted (--backup-identity decrypts it)")

// decrypt decrypts data for the owner of private keys.
func decrypt(data []byte, identities []age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		return nil, ErrEncrypted
	}
	r, err := age.Decrypt(bytes.NewReader(data), identities...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// checkTimeout bounds one readiness request.
const checkTimeout = 2 * time.Second

// newCheck returns a function that returns nil when a GET of every URL answers
// 200. It trusts only certificates of c, so another program that has taken the
// port does not pass for ours.
func newCheck(c *credentials, urls ...string) func(context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	client := &http.Client{
		Timeout: checkTimeout,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots},
			DisableKeepAlives: true,
		},
	}
	return func(ctx context.Context) error {
		for _, url := range urls {
			if err := get(ctx, client, url, c.tokens[adminUser]); err != nil {
				return err
			}
		}
		return nil
	}
}

// get returns nil if the URL answers 200, else an error with the answer.
func get(ctx context.Context, client *http.Client, url, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}

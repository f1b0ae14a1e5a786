// SPDX-License-Identifier: Apache-2.0

// Command podbin is what containers on test nodes run. Its argument says how it
// ends: "pause" obeys SIGTERM, "ignore" does not, and "done" ends at once.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	mode := "pause"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	for mode != "done" {
		if <-signals; mode != "ignore" {
			return
		}
	}
}
